// The directory of a prepared data set on disk: open it if it is complete and has the expected
// fingerprint, or put a new one in its place. See prepare.h for what is in it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/data/prepare.h"

namespace fathom::data {

// Bump when tokenization, the rules for lines, or the layout change: older sets are then stale.
inline constexpr int kPreparedFormat = 1;

// The set, or nullopt: then `why_not` says what is wrong with the existing one, and is empty when
// there is none. `fingerprint` is the expected one.
[[nodiscard]] std::optional<PreparedData> open_prepared(const std::filesystem::path& directory,
                                                        const std::string& fingerprint,
                                                        std::string& why_not);

// A wrong data.directory must not destroy files: InvalidArgument when `directory` is a file or
// holds one that is not of a data set.
void refuse_foreign_files(const std::filesystem::path& directory);

// Writes `data` under a temporary name, syncs it and renames it to `directory`, replacing an older
// set. Foreign files are refused as above. `is_alone`: the caller holds the lock of `directory`, so
// what a killed builder left is removed first. Where there are no locks others may be building the
// same set, each under a name of its own; the last one stays.
void write_prepared(const std::filesystem::path& directory, const PreparedData& data,
                    bool is_alone);

// Hash over tokenizer and tokens.
[[nodiscard]] std::string hash_contents(const PreparedData& data);

}  // namespace fathom::data
