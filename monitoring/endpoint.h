// Where to listen: the forms of monitoring.listen, why a port could not be opened, and waking a
// server that waits on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/error.h"

namespace fathom::monitoring {

struct Endpoint {
  std::string ip;  // numeric IPv4
  uint16_t port = 0;

  [[nodiscard]] std::string text() const { return join(ip, ':', port); }
  [[nodiscard]] bool is_loopback() const { return ip.starts_with("127."); }
  [[nodiscard]] bool is_every_interface() const { return ip == "0.0.0.0"; }
};

// The forms of monitoring.listen. No IPv6: the packaged HTTP server is built without it.
inline constexpr const char* kListenForms =
    "off, PORT or :PORT (of 127.0.0.1), or HOST:PORT, where HOST is a name or an IPv4 address "
    "(IPv6 is not served) and PORT in [0, 65535]";

// Whether a text has one of these forms; a host of this name need not exist.
[[nodiscard]] bool is_listen(const std::string& text);

// nullopt for "off". A host name is resolved to IPv4. InvalidArgument names the key
// monitoring.listen and the given value.
[[nodiscard]] std::optional<Endpoint> parse_listen(const std::string& listen);

// Tries to bind it and returns the operating system's error; empty when there is none.
[[nodiscard]] std::string bind_error(const Endpoint& endpoint);

// Starts a connection to it and closes it at once, which wakes a server that waits for one.
void wake_server(const Endpoint& endpoint) noexcept;

}  // namespace fathom::monitoring
