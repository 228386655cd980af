#include "monitoring/exporter.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <future>
#include <optional>
#include <string_view>

#include <CivetServer.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <pthread.h>

#include "core/base/error.h"
#include "core/base/thread.h"
#include "monitoring/endpoint.h"
#include "monitoring/exposition.h"

namespace fathom::monitoring {
namespace {

// Prometheus's default scrape timeout is 10 s. With the library's defaults (2 threads, 30 s) two
// idle connections delayed a scrape by 30 s; with these, four delay it by 1 s.
constexpr const char* kThreads = "4";
constexpr int kAllThreads = 5;  // with the one that listens
constexpr const char* kRequestTimeoutMs = "1000";
constexpr const char* kQueue = "16";  // accepted connections that wait for a thread

class PublishedMetrics final : public prometheus::Collectable {
 public:
  explicit PublishedMetrics(const Metrics& metrics) : metrics_(metrics) {}
  std::vector<prometheus::MetricFamily> Collect() const override {
    return families_of(*metrics_.snapshot());
  }

 private:
  const Metrics& metrics_;
};

void answer(mg_connection* connection, const char* status, const char* text) {
  mg_printf(connection,
            "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n"
            "Allow: GET\r\nConnection: close\r\n\r\n%s",
            status, std::strlen(text), text);
}

// Before the library's own handlers, which match prefixes (/metricsfoo). Returns the status when
// the request is answered, 0 to pass it on.
int gate(mg_connection* connection) {
  const mg_request_info* request = mg_get_request_info(connection);
  const std::string_view method = request->request_method ? request->request_method : "";
  const std::string_view path = request->local_uri ? request->local_uri : "";
  if (path == "/metrics" && method == "GET") return 0;
  if (path == "/healthz" && method == "GET") {
    answer(connection, "200 OK", "ok\n");
    return 200;
  }
  if (path == "/metrics" || path == "/healthz") {
    answer(connection, "405 Method Not Allowed", "only GET\n");
    return 405;
  }
  answer(connection, "404 Not Found", "only /metrics and /healthz\n");
  return 404;
}

// The server's messages are dropped: our own errors contain what matters.
int drop_message(const mg_connection*, const char*) { return 1; }

// Threads started in its scope leave signals to the threads that expect them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

std::unique_ptr<prometheus::Exposer> serve(const Endpoint& endpoint) {
  CivetCallbacks callbacks;
  callbacks.begin_request = gate;
  callbacks.log_message = drop_message;
  const SignalsBlocked blocked;
  return std::make_unique<prometheus::Exposer>(
      std::vector<std::string>{"listening_ports", endpoint.text(), "num_threads", kThreads,
                               "request_timeout_ms", kRequestTimeoutMs, "enable_keep_alive", "no",
                               "connection_queue", kQueue, "listen_backlog", kQueue},
      &callbacks);
}

std::unique_ptr<prometheus::Exposer> serve_if_free(const Endpoint& endpoint) try {
  return serve(endpoint);
} catch (const std::exception&) {
  return nullptr;
}

}  // namespace

struct Exporter::Server {
  std::shared_ptr<prometheus::Collectable> source;
  std::unique_ptr<prometheus::Exposer> exposer;
  Endpoint endpoint;
};

Exporter::Exporter(const Metrics& metrics, const ExporterConfig& config) {
  std::optional<Endpoint> endpoint = parse_listen(config.listen);
  if (!endpoint) {
    require(!config.required,
            "monitoring.listen: got off, but monitoring.required is true; drop one of them");
    return;
  }

  try {
    require_threads("monitoring.listen", kAllThreads);
  } catch (const IoError& error) {
    if (config.required) throw;
    warnings_.push_back(join(error.what(), "; this run serves no metrics"));
    return;
  }

  std::unique_ptr<prometheus::Exposer> exposer;
  if (config.last_port != 0 && !config.required)
    exposer = serve_if_free({.ip = endpoint->ip, .port = config.last_port});
  if (!exposer) try {
      exposer = serve(*endpoint);
    } catch (const std::exception& server_error) {
      std::string cause = bind_error(*endpoint);
      if (cause.empty()) cause = server_error.what();
      const std::string wanted = join("monitoring.listen: port ", endpoint->port, " of ",
                                      endpoint->ip, " could not be opened (", cause, ")");
      require<IoError>(!config.required, wanted,
                       "; choose another, or drop monitoring.required to take any free port");
      endpoint->port = 0;
      try {
        exposer = serve(*endpoint);
      } catch (const std::exception&) {
        warnings_.push_back(wanted + "; this run serves no metrics");
        return;
      }
      warnings_.push_back(join(wanted, "; serving on port ", exposer->GetListeningPorts().at(0)));
    }

  endpoint->port = uint16_t(exposer->GetListeningPorts().at(0));
  address_ = endpoint->text();
  port_ = endpoint->port;
  if (!endpoint->is_loopback())
    warnings_.push_back(join("monitoring.listen: ", address_,
                             " is open to the network without password and encryption; use "
                             "127.0.0.1 and a reverse proxy if that is not wanted"));
  server_ = std::make_unique<Server>();
  server_->source = std::make_shared<PublishedMetrics>(metrics);
  server_->exposer = std::move(exposer);
  server_->endpoint = *endpoint;
  server_->exposer->RegisterCollectable(server_->source);
}

// The server checks for a request to stop only every 2 s or on a new connection, and a run that got
// SIGTERM from mpirun has 1 s. So connect until it has stopped.
Exporter::~Exporter() {
  if (!server_) return;
  try {
    const auto stopped = std::async(std::launch::async, [this] { server_->exposer.reset(); });
    while (stopped.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready)
      wake_server(server_->endpoint);
  } catch (const std::exception&) {
    // No thread available: the exposer stops in its own destructor, only later.
  }
}

}  // namespace fathom::monitoring
