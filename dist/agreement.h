// Ranks that differ in program, config or data train nonsense or hang much later. At start they
// compare what must be equal, and all of them stop with the same text when it is not.
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
// the odd ranks with their hosts, and both values. Right is what most ranks hold; between equal
// groups rank 0's, else that of the lowest rank.
void check_agreement(Communicator& group, const std::vector<AgreementItem>& items);

}  // namespace fathom::dist
