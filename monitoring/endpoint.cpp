#include "monitoring/endpoint.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/error.h"

namespace fathom::monitoring {
namespace {

constexpr const char* kExpected = ", expected HOST:PORT, PORT or off, such as 127.0.0.1:9464";

uint16_t parse_port(const std::string& text, const std::string& listen) {
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  require(error == std::errc() && rest == end, "monitoring.listen: got '", listen, "', where '",
          text, "' is no port from 0 to 65535", kExpected);
  return port;
}

std::string resolve(const std::string& host, const std::string& listen) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;  // the packaged HTTP server is built without IPv6
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  require(status == 0, "monitoring.listen: got '", listen, "', but host '", host,
          "' has no IPv4 address (", gai_strerror(status), ")", kExpected);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof address);
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  return text;
}

sockaddr_in socket_address(const Endpoint& endpoint) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  inet_pton(AF_INET, endpoint.ip.c_str(), &address.sin_addr);
  return address;
}

}  // namespace

std::optional<Endpoint> parse_listen(const std::string& listen) {
  if (listen == "off") return std::nullopt;
  const size_t colon = listen.rfind(':');
  if (colon == std::string::npos) return Endpoint{"127.0.0.1", parse_port(listen, listen)};
  const std::string host = listen.substr(0, colon);
  require(!host.empty(), "monitoring.listen: got '", listen, "' without a host; write 0.0.0.0",
          listen, " for every interface");
  const uint16_t port = parse_port(listen.substr(colon + 1), listen);
  return Endpoint{resolve(host, listen), port};
}

std::string bind_error(const Endpoint& endpoint) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::strerror(errno);
  const int reuse = 1;  // as the server does: a port in TIME_WAIT is free
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  const sockaddr_in address = socket_address(endpoint);
  const bool failed = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
                      listen(fd, 1) != 0;
  std::string complaint = failed ? std::strerror(errno) : "";
  close(fd);
  return complaint;
}

void knock(const Endpoint& endpoint) noexcept {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  const sockaddr_in address = socket_address(endpoint);
  // The answer does not matter: refused means that the server is gone already.
  [[maybe_unused]] const int ignored =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  close(fd);
}

}  // namespace fathom::monitoring
