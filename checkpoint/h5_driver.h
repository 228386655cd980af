// An HDF5 file driver for a file that is laid out but not stored: it keeps the metadata, in memory,
// and drops the elements of the arrays. It touches no disk, so no write error can reach the
// library, which might bring the process down later.
#pragma once

#include <cstdint>

#include "checkpoint/sparse_bytes.h"

namespace fathom::checkpoint {

struct MetadataFile {
  SparseBytes bytes;     // at their offsets in the file
  uint64_t size = 0;     // of the whole file
  bool is_whole = true;  // false: memory ran out, some metadata is missing
};

// The driver, registered with the library while this lives. Identifiers are HDF5's hid_t.
class MetadataDriver {
 public:
  MetadataDriver();  // H5Error
  MetadataDriver(const MetadataDriver&) = delete;
  MetadataDriver& operator=(const MetadataDriver&) = delete;
  ~MetadataDriver();
  // Makes files created with these access properties go to `file`, which must outlive them, as must
  // this object. H5Error.
  void use(int64_t access, MetadataFile& file) const;

 private:
  int64_t id_;
};

}  // namespace fathom::checkpoint
