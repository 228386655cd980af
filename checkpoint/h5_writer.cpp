#include <atomic>
#include <new>

#include "checkpoint/h5_handle.h"
#include "checkpoint/h5_image.h"
#include "core/base/error.h"

namespace fathom::checkpoint {

void fail_h5(std::string_view doing) {
  std::string innermost;
  // Upward: the first entry is where the error arose.
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned depth, const H5E_error2_t* entry, void* text) -> herr_t {
        if (depth == 0 && entry->desc) *static_cast<std::string*>(text) = entry->desc;
        return 0;
      },
      &innermost);
  throw H5Error(join(doing, ": ", innermost.empty() ? "HDF5 gave no reason" : innermost));
}

namespace {

void write_array(const H5File& file, const ArrayView& array, const H5Properties& links,
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
  if (array.bytes.empty()) return;
  check_h5(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.bytes.data()),
           "storing " + array.name);
}

H5Properties memory_access() {
  H5Properties access(H5Pcreate(H5P_FILE_ACCESS), "access properties");
  // Grown by realloc, which moves pages and copies nothing; the driver zeroes each increment, and
  // one this small is still in the cache when the array's bytes follow.
  constexpr size_t kIncrement = size_t{1} << 20;
  check_h5(H5Pset_fapl_core(access.get(), kIncrement, false), "core driver");
  check_h5(H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST), "version");
  check_h5(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), "close degree");
  return access;
}

H5File create_in_memory(const H5Properties& access) {
  // Without a backing store the name is only a key, but two open files must not share it.
  static std::atomic<int64_t> images = 0;
  const std::string name = join("fathom-state-", images++, ".h5");
  return {H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), "creating the image"};
}

void write_arrays(const H5File& file, std::span<const ArrayView> arrays) {
  const H5Properties links(H5Pcreate(H5P_LINK_CREATE), "link properties");
  check_h5(H5Pset_create_intermediate_group(links.get(), 1), "intermediate groups");
  const H5Properties layout(H5Pcreate(H5P_DATASET_CREATE), "layout properties");
  check_h5(H5Pset_layout(layout.get(), H5D_CONTIGUOUS), "contiguous layout");
  check_h5(H5Pset_fill_time(layout.get(), H5D_FILL_TIME_NEVER), "fill time");
  // A time in the file would give equal states different bytes.
  check_h5(H5Pset_obj_track_times(layout.get(), false), "object times");
  for (const ArrayView& array : arrays) write_array(file, array, links, layout);
  check_h5(H5Fflush(file.get(), H5F_SCOPE_LOCAL), "flushing the image");
}

}  // namespace

struct H5Image::Impl {
  H5Properties access = memory_access();
  H5File file = create_in_memory(access);
};

H5Image::H5Image(std::span<const ArrayView> arrays) {
  const H5Quiet quiet;
  try {
    impl_ = std::make_unique<Impl>();
    write_arrays(impl_->file, arrays);
    const ssize_t size = H5Fget_file_image(impl_->file.get(), nullptr, 0);
    if (size < 0) fail_h5("size of the image");
    void** memory = nullptr;  // the core driver's handle is the address of its buffer's address
    check_h5(H5Fget_vfd_handle(impl_->file.get(), impl_->access.get(),
                               reinterpret_cast<void**>(&memory)),
             "taking the image");
    auto* const image = static_cast<std::byte*>(*memory);
    // "Open for writing" in the superblock, which H5Fget_file_image clears in its copy, too.
    constexpr size_t kSuperblockVersion = 8, kConsistencyFlags = 20;
    if (image[kSuperblockVersion] != std::byte{0}) throw H5Error("superblock is not version 0");
    image[kConsistencyFlags] = std::byte{0};
    bytes_ = {image, size_t(size)};
  } catch (const H5Error& e) {
    fail<IoError>("checkpoint: building ", kStateName, ": ", e.what());
  } catch (const std::bad_alloc&) {
    fail<IoError>("checkpoint: building ", kStateName, ": out of memory");
  }
}

H5Image::~H5Image() = default;

}  // namespace fathom::checkpoint
