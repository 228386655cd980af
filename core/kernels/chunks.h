// The table of chunks of a flat buffer (statistics.h), row by row.
#pragma once

#include "core/kernels/statistics.h"

namespace fathom::kernels {

struct Chunk {
  int64_t first, count, parameter;  // elements
};

[[nodiscard]] inline Chunk chunk_at(const Matrix& chunks, int64_t k) {
  const int32_t* row = chunks.row<int32_t>(k);
  return {int64_t{row[0]} * kChunkUnit, row[1], row[2]};
}

}  // namespace fathom::kernels
