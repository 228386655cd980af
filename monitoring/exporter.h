// Serves the published metrics over HTTP: GET /metrics for Prometheus and GET /healthz ("ok": the
// process is alive). Four threads, one second per request, no keep-alive, a short queue: idle or
// slow clients delay a scrape by about a second and the step loop not at all.
// No TLS and no password: bind to loopback, or put a reverse proxy in front.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "monitoring/metrics.h"

namespace fathom::monitoring {

struct ExporterConfig {
  std::string listen = "127.0.0.1:9464";  // see kListenForms
  bool required = false;                  // a port that cannot be opened ends the run
  uint16_t last_port = 0;  // of an earlier start that was given another one; tried first. 0: none
};

class Exporter {
 public:
  // metrics must outlive the exporter. Unless `required`, the last port is taken if it is free, and
  // else the one of `listen`. A port that cannot be bound: with `required` IoError, else
  // a free port of the same host, and if there is none no exporter; both with a warning.
  // So for threads that cannot be started.
  // InvalidArgument when `listen` cannot be read.
  Exporter(const Metrics& metrics, const ExporterConfig& config);
  ~Exporter();  // takes at most the second that a request may last
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  // "127.0.0.1:9464" with the port in use; empty when nothing is served.
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] uint16_t port() const { return port_; }  // 0 when nothing is served
  // For the user, at start.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Server;  // keeps prometheus-cpp out of this header

  std::unique_ptr<Server> server_;
  std::string address_;
  uint16_t port_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace fathom::monitoring
