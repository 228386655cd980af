// Ranks that differ in program, config or data train nonsense or hang much later. At start they
// compare what must be equal, and all of them stop with the same error when it is not.
#pragma once

#include <string>
#include <vector>

#include "dist/communicator.h"

namespace fathom::dist {

struct AgreementItem {
  std::string what;   // as it reads in a message: "library versions"
  std::string value;  // short, or a hash
};

// Collective. If an item differs, every rank throws the same InvalidArgument that names the item,
// the differing ranks with their hosts, and both values. The majority's value counts as right; in a
// tie rank 0's, else the lowest rank's.
void check_agreement(Communicator& group, const std::vector<AgreementItem>& items);

}  // namespace fathom::dist
