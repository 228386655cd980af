// A minimal HTTP client: one connection, raw bytes out, everything in until the server closes.
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace fathom::monitoring {

class Connection {
 public:
  // receive_buffer: bytes; 0 leaves the default.
  explicit Connection(const std::string& address, int receive_buffer = 0) {
    const size_t colon = address.rfind(':');
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(uint16_t(std::stoi(address.substr(colon + 1))));
    inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
    fd_ = socket(AF_INET, SOCK_STREAM, 0);
    if (receive_buffer > 0)
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
      close(fd_);
      throw std::runtime_error("connect failed for " + address);
    }
  }
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send_bytes(const std::string& bytes) const {
    if (send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) != ssize_t(bytes.size()))
      throw std::runtime_error("send failed");
  }
  // Waits until there is something to read, and leaves it there.
  [[nodiscard]] bool has_answer(std::chrono::milliseconds patience) const {
    pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
    return poll(&readable, 1, int(patience.count())) == 1;
  }
  [[nodiscard]] std::string receive_all() const {
    std::string all;
    char block[65536];
    for (ssize_t got; (got = recv(fd_, block, sizeof block, 0)) > 0;)
      all.append(block, size_t(got));
    return all;
  }

 private:
  int fd_;
};

struct Response {
  int status = 0;  // 0: no HTTP answer
  std::string body;
};

inline Response request(const std::string& address, const std::string& path,
                        const std::string& method = "GET") {
  const Connection connection(address);
  connection.send_bytes(method + ' ' + path + " HTTP/1.1\r\nHost: test\r\n\r\n");
  const std::string all = connection.receive_all();
  if (!all.starts_with("HTTP/1.1 ")) return {};
  const size_t end = all.find("\r\n\r\n");
  return {std::stoi(all.substr(9, 3)), end == std::string::npos ? "" : all.substr(end + 4)};
}

}  // namespace fathom::monitoring
