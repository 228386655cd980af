#include "launcher/train/textfile_sink.h"

#include "core/base/error.h"
#include "core/base/file.h"
#include "monitoring/exposition.h"

namespace fathom::launcher {

void TextfileSink::write() {
  try {
    write_file_durably("metrics", path_,
                       monitoring::exposition(*metrics_.snapshot(), {{"run", name_}}));
  } catch (const IoError& error) {
    if (!has_warned_) log_.warn(error.what());
    has_warned_ = true;
  }
}

}  // namespace fathom::launcher
