#include "monitoring/exporter.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "monitoring/endpoint.h"
#include "monitoring/exposition.h"
#include "tests/monitoring/http_client.h"
#include "tests/support/listen_forms.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thread_limit.h"

// Read by ThreadSanitizer. civetweb formats the Date of its error pages with gmtime in all threads;
// at worst that one header is garbled.
extern "C" const char* __tsan_default_suppressions() { return "race:gmtime\n"; }

namespace fathom::monitoring {
namespace {

using support::read_text;
using support::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Every family with a series, every label odd.
void fill(Metrics& metrics) {
  const std::string odd = "quote \" backslash \\ newline \n nul \xff umlaut \xC3\xBC {},=";
  for (size_t g = 0; g < size_t(Gauge::kCount); ++g) {
    const size_t labels = fixed_families()[family_index(Gauge(g))].labels.size();
    metrics.set(Gauge(g), LabelValues(labels, odd), 0.1 * double(g));
  }
  for (size_t c = 0; c < size_t(Counter::kCount); ++c) {
    const size_t labels = fixed_families()[family_index(Counter(c))].labels.size();
    metrics.increment(Counter(c), LabelValues(labels, odd), double(c));
  }
  metrics.observe(Histogram::kStepDuration, 0.2);
  metrics.observe(Histogram::kCheckpointDuration, 2);
  metrics.publish();
}

std::string port_of(const std::string& address) { return address.substr(address.rfind(':') + 1); }

TEST(Exporter, ServesThePublishedSnapshot) {
  Metrics metrics;
  const Exporter exporter(metrics, {.listen = "127.0.0.1:0"});
  metrics.set(Gauge::kLoss, 2.25);

  const Response before = request(exporter.address(), "/metrics");
  metrics.publish();
  const Response after = request(exporter.address(), "/metrics");

  EXPECT_EQ(before.status, 200);
  EXPECT_EQ(before.body.find("fathom_loss"), std::string::npos);
  EXPECT_THAT(after.body, HasSubstr("\nfathom_loss 2.25\n"));
  EXPECT_THAT(exporter.warnings(), IsEmpty());
}

TEST(Exporter, ExpositionPassesPromtoolWithOddLabels) {
  if (std::system("command -v promtool >/dev/null") != 0)
    GTEST_SKIP() << "promtool is not installed (Debian package prometheus)";
  Metrics metrics;
  fill(metrics);
  const Exporter exporter(metrics, {.listen = "127.0.0.1:0"});
  const TemporaryDirectory directory;

  const Response response = request(exporter.address(), "/metrics");
  std::ofstream(directory / "scrape", std::ios::binary) << response.body;
  const std::string command = "promtool check metrics < " + (directory / "scrape").string() +
                              " > " + (directory / "lint").string() + " 2>&1";
  const int status = std::system(command.c_str());

  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(status, 0) << read_text(directory / "lint") << response.body;
  EXPECT_THAT(response.body, HasSubstr(R"(quote \" backslash \\ newline \n nul )"));
}

TEST(Exporter, AnswersOnlyGetOfTheTwoPages) {
  Metrics metrics;
  const Exporter exporter(metrics, {.listen = "127.0.0.1:0"});
  const std::string& at = exporter.address();

  EXPECT_EQ(request(at, "/metrics?name=x").status, 200);
  EXPECT_EQ(request(at, "/healthz").body, "ok\n");
  EXPECT_EQ(request(at, "/metricsfoo").status, 404);
  EXPECT_EQ(request(at, "/metrics/x").status, 404);
  EXPECT_EQ(request(at, "/").status, 404);
  EXPECT_EQ(request(at, "/%2e%2e/%2e%2e/etc/passwd").status, 404);
  EXPECT_EQ(request(at, "/metrics", "POST").status, 405);
  EXPECT_EQ(request(at, "/metrics", "HEAD").status, 405);
  EXPECT_GE(request(at, "/metrics", "TRACE").status, 400);
  EXPECT_EQ(request(at, "/metrics").status, 200);
}

TEST(Exporter, SurvivesMalformedRequests) {
  Metrics metrics;
  const Exporter exporter(metrics, {.listen = "127.0.0.1:0"});
  const std::vector<std::string> requests = {
      "\r\n\r\n",
      "GET\r\n\r\n",
      "GET /metrics HTTP/9.9\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nX: " + std::string(60000, 'a') + "\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello\r\n\r\n",
      std::string("GET /met\0rics HTTP/1.1\r\n\r\n", 27),
  };

  for (const std::string& bytes : requests) {
    const Connection connection(exporter.address());
    connection.send_bytes(bytes);
    (void)connection.receive_all();
  }

  EXPECT_EQ(request(exporter.address(), "/metrics").status, 200);
}

TEST(Exporter, IdleAndHalfSentConnectionsDelayAScrapeLessThanThreeSeconds) {
  Metrics metrics;
  const Exporter exporter(metrics, {.listen = "127.0.0.1:0"});
  const Connection idle1(exporter.address()), idle2(exporter.address());
  const Connection half1(exporter.address()), half2(exporter.address());
  half1.send_bytes("GET /metr");
  half2.send_bytes("GET /metr");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));

  const auto start = Clock::now();
  const Response response = request(exporter.address(), "/metrics");

  EXPECT_EQ(response.status, 200);
  EXPECT_LT(seconds_since(start), 3);
}

// Clients ask for a big page and read none of it, so every server thread is stuck in a write.
TEST(Exporter, StepLoopDoesNotWaitForClientsThatNeverRead) {
  Metrics metrics(100000);
  for (int rank = 0; rank < 20000; ++rank)
    metrics.set(Gauge::kRankStepLag, {std::to_string(rank)}, rank);
  const auto seconds_of_five_steps = [&metrics] {
    const auto start = Clock::now();
    for (int step = 0; step < 5; ++step) {
      metrics.set(Gauge::kLoss, step);
      metrics.publish();
    }
    return seconds_since(start);
  };
  const double alone = seconds_of_five_steps();
  const Exporter exporter(metrics, {.listen = "127.0.0.1:0"});
  std::vector<std::unique_ptr<Connection>> clients;
  for (int i = 0; i < 4; ++i) {  // as many as the server has threads
    clients.push_back(std::make_unique<Connection>(exporter.address(), /*receive_buffer=*/2048));
    clients.back()->send_bytes("GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n");
  }
  for (const auto& client : clients) ASSERT_TRUE(client->has_answer(std::chrono::seconds(60)));

  // A wait for one of them would last for the server's time limit of a second.
  EXPECT_LT(seconds_of_five_steps(), 3 * alone + 0.5);
  clients.clear();
  EXPECT_EQ(request(exporter.address(), "/healthz").status, 200);
}

TEST(Exporter, ATakenPortIsReplacedAndReported) {
  Metrics metrics;
  const Exporter first(metrics, {.listen = "127.0.0.1:0"});

  const Exporter second(metrics, {.listen = first.address()});

  EXPECT_NE(second.address(), first.address());
  EXPECT_THAT(second.address(), StartsWith("127.0.0.1:"));
  EXPECT_EQ(request(second.address(), "/metrics").status, 200);
  EXPECT_THAT(second.warnings(),
              ElementsAre("monitoring.listen: port " + port_of(first.address()) +
                          " of 127.0.0.1 could not be opened (Address already in use); serving "
                          "on port " +
                          port_of(second.address())));
}

TEST(Exporter, ATakenPortEndsTheRunWhenRequired) {
  Metrics metrics;
  const Exporter first(metrics, {.listen = "127.0.0.1:0"});

  try {
    const Exporter second(metrics, {.listen = first.address(), .required = true});
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_EQ(error.code(), ExitCode::kIo);
    EXPECT_THAT(error.what(), HasSubstr("monitoring.listen: port " + port_of(first.address())));
    EXPECT_THAT(error.what(), HasSubstr("drop monitoring.required"));
  }
}

TEST(Exporter, AnAddressOfAnotherMachineLeavesTheRunWithoutMetrics) {
  Metrics metrics;

  const Exporter exporter(metrics, {.listen = "192.0.2.1:9464"});

  EXPECT_EQ(exporter.address(), "");
  ASSERT_EQ(exporter.warnings().size(), 1);
  EXPECT_THAT(exporter.warnings()[0], HasSubstr("Cannot assign requested address"));
  EXPECT_THAT(exporter.warnings()[0], HasSubstr("this run serves no metrics"));
}

TEST(Exporter, WarnsWhenOpenToTheNetwork) {
  Metrics metrics;

  const Exporter exporter(metrics, {.listen = "0.0.0.0:0"});

  EXPECT_THAT(exporter.address(), StartsWith("0.0.0.0:"));
  ASSERT_EQ(exporter.warnings().size(), 1);
  EXPECT_THAT(exporter.warnings()[0], HasSubstr("open to the network without password"));
  EXPECT_EQ(request("127.0.0.1:" + port_of(exporter.address()), "/metrics").status, 200);
}

// The server itself does not look: without its first thread its end would hang.
TEST(Exporter, ServesNothingWhereOneOfItsThreadsIsMissing) {
  Metrics metrics;
  for (int most = 0; most < 5; ++most) {
    const auto limit = support::ThreadLimit::most(most);
    const Exporter exporter(metrics, {.listen = "127.0.0.1:0"});
    EXPECT_EQ(exporter.address(), "");
    ASSERT_EQ(exporter.warnings().size(), 1);
    EXPECT_THAT(exporter.warnings()[0], StartsWith(join("monitoring.listen: thread ", most + 1,
                                                        " of 5 cannot be started")));
    EXPECT_THAT(exporter.warnings()[0], HasSubstr("; this run serves no metrics"));
    EXPECT_THROW(Exporter(metrics, {.listen = "127.0.0.1:0", .required = true}), IoError);
  }
  const auto limit = support::ThreadLimit::most(5);
  const Exporter exporter(metrics, {.listen = "127.0.0.1:0"});
  EXPECT_EQ(request(exporter.address(), "/healthz").status, 200);
}

TEST(Exporter, OffServesNothing) {
  Metrics metrics;

  const Exporter exporter(metrics, {.listen = "off"});

  EXPECT_EQ(exporter.address(), "");
  EXPECT_THAT(exporter.warnings(), IsEmpty());
  EXPECT_THROW(Exporter(metrics, {.listen = "off", .required = true}), InvalidArgument);
}

TEST(Exporter, ClosesQuicklyAndFreesThePort) {
  Metrics metrics;
  std::string address;
  const auto start = Clock::now();
  {
    const Exporter exporter(metrics, {.listen = "127.0.0.1:0"});
    address = exporter.address();
    EXPECT_EQ(request(address, "/metrics").status, 200);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_LT(seconds_since(start), 0.6);  // 2.1 s if the server were left to itself

  const Exporter again(metrics, {.listen = address, .required = true});

  EXPECT_EQ(again.address(), address);
}

TEST(Endpoint, ABarePortIsOfLoopback) {
  EXPECT_EQ(parse_listen("9464")->text(), "127.0.0.1:9464");
  EXPECT_EQ(parse_listen("localhost:1")->text(), "127.0.0.1:1");
  EXPECT_EQ(parse_listen("0.0.0.0:80")->text(), "0.0.0.0:80");
  EXPECT_TRUE(parse_listen("127.1.2.3:80")->is_loopback());
  EXPECT_FALSE(parse_listen("10.0.0.1:80")->is_loopback());
  EXPECT_EQ(parse_listen("off"), std::nullopt);
}

TEST(Endpoint, EveryFormIsRead) {
  for (const std::string listen : support::kListenable) {
    EXPECT_TRUE(is_listen(listen)) << listen;
    EXPECT_TRUE(parse_listen(listen).has_value()) << listen;
  }
  EXPECT_TRUE(is_listen("off"));
}

TEST(Endpoint, WhatCannotBeReadIsRefusedWithTheKey) {
  for (const std::string listen : support::kNotListenable) {
    EXPECT_FALSE(is_listen(listen)) << listen;
    try {
      (void)parse_listen(listen);
      FAIL() << listen << " was taken";
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.what(),
                "monitoring.listen: got '" + listen + "', allowed " + std::string(kListenForms));
    }
  }
}

TEST(Endpoint, AHostWithoutAnAddressIsNamed) {
  EXPECT_TRUE(is_listen("host.invalid:80"));
  try {
    (void)parse_listen("host.invalid:80");
    FAIL() << "no error";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), StartsWith("monitoring.listen: got 'host.invalid:80', but host "
                                         "'host.invalid' has no IPv4 address ("));
  }
}

}  // namespace
}  // namespace fathom::monitoring
