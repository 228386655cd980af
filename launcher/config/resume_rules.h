// What the config of a run may change when the run is resumed. The table of keys says of each
// whether it changes freely, when it is named in --allow-change, or never.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/config/config.h"
#include "launcher/config/show.h"

namespace fathom::launcher {

// The keys of `--allow-change KEY,KEY,...`; none of an empty list. InvalidArgument for a name that
// is no key, and for a key that no resume may change.
[[nodiscard]] std::vector<std::string> parse_allowed_changes(std::string_view list);

// Those differences that needed to be allowed and were, in the order of the table; data.train and
// data.valid are left to a comparison of their texts. InvalidArgument
// names the first key that changed and may not, with both values; where the change can be allowed,
// also the option that allows this one and all others.
[[nodiscard]] std::vector<Difference> check_resume(const Config& old_config,
                                                   const Config& new_config,
                                                   const std::vector<std::string>& allowed);

}  // namespace fathom::launcher
