#include "dist/agreement.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "core/base/error.h"
#include "core/base/system.h"

namespace fathom::dist {
namespace {

// One rank's answer. On the wire: every string as its length in 8 bytes and its content.
struct Answer {
  std::string host;
  std::vector<AgreementItem> items;
};

void write(std::string& out, const std::string& text) {
  const uint64_t length = text.size();
  out.append(reinterpret_cast<const char*>(&length), sizeof length);
  out += text;
}

std::string read(std::string_view& in) {
  uint64_t length = 0;
  require<DeviceError>(in.size() >= sizeof length, "agreement: a peer's answer is cut short");
  std::memcpy(&length, in.data(), sizeof length);
  in.remove_prefix(sizeof length);
  require<DeviceError>(in.size() >= length, "agreement: a peer's answer is cut short");
  std::string text(in.substr(0, length));
  in.remove_prefix(length);
  return text;
}

std::string encode(const Answer& answer) {
  std::string out;
  write(out, answer.host);
  for (const AgreementItem& item : answer.items) {
    write(out, item.what);
    write(out, item.value);
  }
  return out;
}

Answer decode(std::string_view in) {
  Answer answer;
  answer.host = read(in);
  while (!in.empty()) {
    std::string what = read(in);
    answer.items.push_back({.what = std::move(what), .value = read(in)});
  }
  return answer;
}

// The index of the value that is right.
size_t find_right(const std::vector<std::string>& values) {
  std::map<std::string_view, int> votes;
  for (const std::string& value : values) ++votes[value];
  size_t right = 0;
  for (size_t r = 1; r < values.size(); ++r)
    if (votes[values[r]] > votes[values[right]]) right = r;
  return right;
}

std::string quoted(const std::string& value) {
  constexpr size_t kLongest = 120;
  return value.size() <= kLongest ? "'" + value + "'" : "'" + value.substr(0, kLongest) + "...'";
}

// "rank 2 on node7 has 'b', ranks 0, 1, 3 have 'a'"; empty when all are equal.
std::string describe_difference(const std::vector<std::string>& values,
                                const std::vector<Answer>& answers) {
  const size_t right = find_right(values);
  std::string odd;
  std::string agreeing;
  int agreeing_count = 0;
  for (size_t r = 0; r < values.size(); ++r) {
    if (values[r] == values[right]) {
      agreeing += join(agreeing.empty() ? "" : ", ", r);
      ++agreeing_count;
    } else {
      odd += join("rank ", r, " on ", answers[r].host, " has ", quoted(values[r]), ", ");
    }
  }
  if (odd.empty()) return {};
  return join(odd, agreeing_count == 1 ? "rank " : "ranks ", agreeing,
              agreeing_count == 1 ? " has " : " have ", quoted(values[right]));
}

}  // namespace

void check_agreement(Communicator& group, const std::vector<AgreementItem>& items) {
  std::vector<Answer> answers;
  for (const std::string& text : group.all_gather(encode({.host = host_name(), .items = items})))
    answers.push_back(decode(text));

  std::string differences;
  const auto compare = [&](const std::string& what, auto&& value_of) {
    std::vector<std::string> values;
    for (const Answer& answer : answers) values.push_back(value_of(answer));
    const std::string difference = describe_difference(values, answers);
    if (difference.empty()) return;
    differences += join(differences.empty() ? "" : "; ", what, ": ", difference);
  };

  compare("what is compared", [](const Answer& answer) {
    std::string names;
    for (const AgreementItem& item : answer.items) names += (names.empty() ? "" : ", ") + item.what;
    return names;
  });
  if (differences.empty())
    for (size_t i = 0; i < items.size(); ++i)
      compare(items[i].what, [i](const Answer& answer) { return answer.items[i].value; });
  require(differences.empty(), "agreement: the ranks differ in ", differences,
          "; start every rank with the same program, config and data");
}

}  // namespace fathom::dist
