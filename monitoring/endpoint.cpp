#include "monitoring/endpoint.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/error.h"

namespace fathom::monitoring {
namespace {

struct HostPort {
  std::string host;
  uint16_t port = 0;
};

std::optional<uint16_t> read_port(std::string_view text) {
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && rest == end ? std::optional(port) : std::nullopt;
}

bool is_host(std::string_view text) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-';
  };
  return !text.empty() && std::ranges::all_of(text, is_allowed);
}

// PORT, :PORT or HOST:PORT.
std::optional<HostPort> read_host_port(std::string_view text) {
  const size_t colon = text.rfind(':');
  const bool has_colon = colon != text.npos, has_host = has_colon && colon > 0;
  const std::string_view host = has_host ? text.substr(0, colon) : "127.0.0.1";
  const auto port = read_port(has_colon ? text.substr(colon + 1) : text);
  if (!port || !is_host(host)) return std::nullopt;
  return HostPort{std::string(host), *port};
}

std::string resolve(const std::string& host, const std::string& listen) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  require(status == 0, "monitoring.listen: got '", listen, "', but host '", host,
          "' has no IPv4 address (", gai_strerror(status), "), allowed ", kListenForms);
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

bool is_listen(const std::string& text) { return text == "off" || read_host_port(text); }

std::optional<Endpoint> parse_listen(const std::string& listen) {
  if (listen == "off") return std::nullopt;
  const auto given = read_host_port(listen);
  require(given.has_value(), "monitoring.listen: got '", listen, "', allowed ", kListenForms);
  return Endpoint{resolve(given->host, listen), given->port};
}

std::string bind_error(const Endpoint& endpoint) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::strerror(errno);
  const int reuse = 1;  // as the server does: a port in TIME_WAIT is free
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  const sockaddr_in address = socket_address(endpoint);
  const bool failed = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
                      listen(fd, 1) != 0;
  std::string error = failed ? std::strerror(errno) : "";
  close(fd);
  return error;
}

void wake_server(const Endpoint& endpoint) noexcept {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  const sockaddr_in address = socket_address(endpoint);
  // The result does not matter: a refusal means that the server has stopped already.
  [[maybe_unused]] const int ignored =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  close(fd);
}

}  // namespace fathom::monitoring
