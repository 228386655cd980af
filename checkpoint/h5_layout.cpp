#include "checkpoint/h5_layout.h"

#include <algorithm>
#include <new>

#include "checkpoint/h5_driver.h"
#include "checkpoint/h5_handle.h"
#include "core/base/error.h"

namespace fathom::checkpoint {
namespace {

struct Placement {
  uint64_t offset;
  size_t array;
};

// Creates the data set and returns where its elements begin; HADDR_UNDEF if it has none.
haddr_t place_array(const H5File& file, const ArrayView& array, const H5Properties& links,
                    const H5Properties& layout) {
  const std::vector<hsize_t> extents(array.shape.begin(), array.shape.end());
  const H5Space space(extents.empty()
                          ? H5Screate(H5S_SCALAR)
                          : H5Screate_simple(int(extents.size()), extents.data(), nullptr),
                      "shape of " + array.name);
  const hid_t type = array.type == ElementType::kF32 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
  const H5Dataset dataset(H5Dcreate2(file.get(), array.name.c_str(), type, space.get(), links.get(),
                                     layout.get(), H5P_DEFAULT),
                          "creating " + array.name);
  if (array.bytes.empty()) return HADDR_UNDEF;
  // Allocates the space; the driver drops the elements.
  check_h5(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.bytes.data()),
           "placing " + array.name);
  const haddr_t offset = H5Dget_offset(dataset.get());
  if (offset == HADDR_UNDEF) fail_h5("offset of " + array.name);
  return offset;
}

std::vector<Placement> place_arrays(const H5File& file, std::span<const ArrayView> arrays) {
  const H5Properties links(H5Pcreate(H5P_LINK_CREATE), "link properties");
  check_h5(H5Pset_create_intermediate_group(links.get(), 1), "intermediate groups");
  const H5Properties layout(H5Pcreate(H5P_DATASET_CREATE), "layout properties");
  check_h5(H5Pset_layout(layout.get(), H5D_CONTIGUOUS), "contiguous layout");
  check_h5(H5Pset_fill_time(layout.get(), H5D_FILL_TIME_NEVER), "fill time");
  // A time in the file would give equal states different bytes.
  check_h5(H5Pset_obj_track_times(layout.get(), false), "object times");
  std::vector<Placement> placements;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const haddr_t offset = place_array(file, arrays[i], links, layout);
    if (offset != HADDR_UNDEF) placements.push_back({offset, i});
  }
  return placements;
}

// In the order of the file. When this returns the file is closed and `metadata` complete.
std::vector<Placement> lay_out(std::span<const ArrayView> arrays, MetadataFile& metadata) {
  const H5Quiet quiet;
  const MetadataDriver driver;
  const H5Properties access(H5Pcreate(H5P_FILE_ACCESS), "access properties");
  driver.use(access.get(), metadata);
  check_h5(H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST), "version");
  check_h5(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), "close degree");
  H5File file(H5Fcreate(kStateName, H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), "creating the file");
  std::vector<Placement> placements = place_arrays(file, arrays);
  check_h5(file.close(), "closing the file");
  if (!metadata.is_whole) throw std::bad_alloc();
  std::sort(placements.begin(), placements.end(),
            [](const Placement& a, const Placement& b) { return a.offset < b.offset; });
  return placements;
}

}  // namespace

StateLayout::StateLayout(std::span<const ArrayView> arrays) try {
  MetadataFile file;
  const std::vector<Placement> placements = lay_out(arrays, file);
  uint64_t array_bytes = 0;
  for (const ArrayView& array : arrays) array_bytes += array.bytes.size();
  metadata_.resize(file.size - array_bytes);

  std::span<std::byte> free = metadata_;
  uint64_t end = 0;
  const auto add_metadata_up_to = [&](uint64_t offset) {
    if (offset == end) return;
    const std::span<std::byte> piece = free.first(offset - end);
    file.bytes.read(end, piece);
    pieces_.push_back({piece, -1});
    free = free.subspan(piece.size());
  };
  for (const Placement& placement : placements) {
    add_metadata_up_to(placement.offset);
    const std::span<const std::byte> elements = arrays[placement.array].bytes;
    pieces_.push_back({elements, int64_t(placement.array)});
    end = placement.offset + elements.size();
  }
  add_metadata_up_to(file.size);
  bytes_ = int64_t(file.size);
} catch (const H5Error& e) {
  fail<IoError>("checkpoint: building ", kStateName, ": ", e.what());
} catch (const std::bad_alloc&) {
  fail<IoError>("checkpoint: building ", kStateName, ": out of memory");
}

}  // namespace fathom::checkpoint
