// CLI11's class, for headers that only name it.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}
