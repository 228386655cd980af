// Texts for monitoring.listen: the config and the library must accept the same ones.
#pragma once

namespace fathom::support {

inline constexpr const char* kListenable[] = {
    "0", "9464", "65535", ":9464", "127.0.0.1:0", "0.0.0.0:65535", "localhost:9464"};
inline constexpr const char* kNotListenable[] = {
    "",       "on",      "x",        "-1",    "+1",     "65536",  "9464 ",  ":",      ":x",
    "a:",     "a:65536", "a:-1",     "a:+1",  "a:443s", "a b:1",  "a;b:80", "a_b:80", "a/b:80",
    "::1:80", "[::1]",   "[::1]:80", "[]:80", "[x]:80", "[::]:0", "OFF",    "off:",   "127.0.0.1"};

}  // namespace fathom::support
