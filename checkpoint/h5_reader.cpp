#include "checkpoint/h5_reader.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <unordered_map>

#include "checkpoint/h5_handle.h"
#include "core/base/error.h"

namespace fathom::checkpoint {
namespace {

struct Link {
  std::string name;
  H5L_type_t type;
};

// The library would copy the image three times. These callbacks lend it the caller's instead, which
// a file opened without write access only reads. (H5LTopen_file_image does the same, but leaks.)
struct BorrowedImage {
  void* data;
  size_t size;
};

H5Properties borrowed_access(BorrowedImage& image) {
  using Operation = H5FD_file_image_op_t;
  H5FD_file_image_callbacks_t callbacks{
      .image_malloc = [](size_t size, Operation, void* udata) -> void* {
        const auto& borrowed = *static_cast<BorrowedImage*>(udata);
        return size == borrowed.size ? borrowed.data : nullptr;
      },
      .image_memcpy = [](void* to, const void* from, size_t, Operation, void*) -> void* {
        return to == from ? to : nullptr;
      },
      .image_realloc = [](void*, size_t, Operation, void*) -> void* { return nullptr; },
      .image_free = [](void*, Operation, void*) -> herr_t { return 0; },
      .udata_copy = [](void* udata) -> void* { return udata; },
      .udata_free = [](void*) -> herr_t { return 0; },
      .udata = &image};
  H5Properties access(H5Pcreate(H5P_FILE_ACCESS), "access properties");
  check_h5(H5Pset_fapl_core(access.get(), size_t{1} << 20, false), "core driver");
  check_h5(H5Pset_file_image_callbacks(access.get(), &callbacks), "image callbacks");
  check_h5(H5Pset_file_image(access.get(), image.data, image.size), "setting the image");
  return access;
}

class Walker {
 public:
  Walker(const H5File& file, std::span<const std::byte> image, std::span<const ArrayInfo> expected)
      : file_(file), image_(image), expected_(expected), offsets_(expected.size(), -1) {
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::string& name = expected[i].name;
      index_.emplace(name, i);
      for (size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1))
        groups_.insert(name.substr(0, at));
    }
  }

  std::vector<int64_t> walk() {
    visit_group("");
    for (size_t i = 0; i < expected_.size(); ++i)
      if (!seen_.contains(i)) throw H5Error(expected_[i].name + " is missing");
    return std::move(offsets_);
  }

 private:
  // The expected names bound the depth: the path of each group is a prefix of one of them.
  void visit_group(const std::string& path) {
    for (const Link& link : links_of(path)) {
      const std::string name = path.empty() ? link.name : path + "/" + link.name;
      if (link.type != H5L_TYPE_HARD)
        throw H5Error(join(name, " is ",
                           link.type == H5L_TYPE_SOFT       ? "a soft"
                           : link.type == H5L_TYPE_EXTERNAL ? "an external"
                                                            : "a user-defined",
                           " link, only hard links are allowed"));
      if (!groups_.contains(name) && !index_.contains(name))
        throw H5Error(name + " is not in the manifest");
      H5O_info_t info;
      check_h5(H5Oget_info_by_name2(file_.get(), name.c_str(), &info,
                                    H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS, H5P_DEFAULT),
               name);
      if (info.rc != 1) throw H5Error(name + " is linked more than once");
      if (info.num_attrs != 0) throw H5Error(name + " has attributes, which are not allowed");
      const bool is_group = info.type == H5O_TYPE_GROUP;
      if (is_group && groups_.contains(name)) {
        visit_group(name);
      } else if (info.type == H5O_TYPE_DATASET && index_.contains(name)) {
        visit_dataset(index_.at(name));
      } else {
        throw H5Error(join(name, " is a ", is_group ? "group" : "data set or type",
                           ", which is not what the manifest says"));
      }
    }
  }

  std::vector<Link> links_of(const std::string& path) {
    const H5Group group(H5Gopen2(file_.get(), path.empty() ? "/" : path.c_str(), H5P_DEFAULT),
                        "opening group /" + path);
    struct Listing {
      std::vector<Link> links;
      size_t limit;
    } listing{{}, groups_.size() + index_.size()};
    // No exception may cross the C library; one link too many ends the iteration.
    const herr_t status = H5Literate(
        group.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr,
        [](hid_t, const char* name, const H5L_info_t* info, void* data) noexcept -> herr_t {
          auto& out = *static_cast<Listing*>(data);
          out.links.push_back({name, info->type});
          return out.links.size() > out.limit ? 1 : 0;
        },
        &listing);
    check_h5(status, "listing /" + path);
    if (status > 0) throw H5Error("/" + path + " has more links than the manifest has names");
    return std::move(listing.links);
  }

  void visit_dataset(size_t i) {
    const ArrayInfo& info = expected_[i];
    const std::string& name = info.name;
    const H5Dataset dataset(H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), "opening " + name);
    check_layout(dataset, name);
    check_type_and_shape(dataset, info);
    seen_.insert(i);
    if (info.bytes() == 0) {
      offsets_[i] = 0;
      return;
    }
    const hsize_t stored = H5Dget_storage_size(dataset.get());
    if (stored != hsize_t(info.bytes()))
      throw H5Error(join(name, " stores ", stored, " bytes, its shape needs ", info.bytes()));
    const haddr_t offset = H5Dget_offset(dataset.get());
    if (offset == HADDR_UNDEF || offset > image_.size() || stored > image_.size() - offset)
      throw H5Error(name + " lies outside the file");
    offsets_[i] = int64_t(offset);
  }

  static void check_layout(const H5Dataset& dataset, const std::string& name) {
    const H5Properties properties(H5Dget_create_plist(dataset.get()), "properties of " + name);
    if (H5Pget_layout(properties.get()) != H5D_CONTIGUOUS)
      throw H5Error(name + " is not contiguous (it is chunked, compact or virtual)");
    if (H5Pget_external_count(properties.get()) != 0)
      throw H5Error(name + " has external storage, which is not allowed");
    if (H5Pget_nfilters(properties.get()) != 0)
      throw H5Error(name + " has a filter, which is not allowed");
  }

  static void check_type_and_shape(const H5Dataset& dataset, const ArrayInfo& info) {
    const H5Type type(H5Dget_type(dataset.get()), "type of " + info.name);
    const hid_t wanted = info.type == ElementType::kF32 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
    if (H5Tcommitted(type.get()) != 0 || H5Tequal(type.get(), wanted) <= 0)
      throw H5Error(join(info.name, " is not little-endian ", to_string(info.type),
                         ", which the manifest says"));
    const H5Space space(H5Dget_space(dataset.get()), "shape of " + info.name);
    const int rank = H5Sget_simple_extent_ndims(space.get());
    std::vector<hsize_t> extents(info.shape.size());
    if (rank != int(extents.size()) || H5Sget_simple_extent_type(space.get()) == H5S_NULL)
      throw H5Error(
          join(info.name, " has ", rank, " axes, the manifest says ", shape_text(info.shape)));
    check_h5(H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr), info.name);
    if (!std::equal(extents.begin(), extents.end(), info.shape.begin(),
                    [](hsize_t a, int64_t b) { return a == hsize_t(b); }))
      throw H5Error(join(info.name, " is ",
                         shape_text(std::vector<int64_t>(extents.begin(), extents.end())),
                         ", the manifest says ", shape_text(info.shape)));
  }

  const H5File& file_;
  std::span<const std::byte> image_;
  std::span<const ArrayInfo> expected_;
  std::unordered_map<std::string, size_t> index_;
  std::set<std::string> groups_;  // every prefix of an expected name
  std::set<size_t> seen_;
  std::vector<int64_t> offsets_;
};

}  // namespace

std::vector<int64_t> locate_arrays(std::span<const std::byte> image,
                                   std::span<const ArrayInfo> expected, const std::string& where) {
  const H5Quiet quiet;
  try {
    check_h5(H5PLset_loading_state(0), "switching plugins off");
    BorrowedImage borrowed{const_cast<std::byte*>(image.data()), image.size()};
    const H5Properties access = borrowed_access(borrowed);
    // The library takes two open files with the same name for one file.
    static std::atomic<int64_t> images = 0;
    const std::string name = join("fathom-read-", images++, ".h5");
    const H5File file(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.get()), "opening");
    const H5Properties creation(H5Fget_create_plist(file.get()), "file properties");
    hsize_t user_block = 0;
    check_h5(H5Pget_userblock(creation.get(), &user_block), "user block");
    if (user_block != 0) throw H5Error("it has a user block, which is not allowed");
    return Walker(file, image, expected).walk();
  } catch (const H5Error& e) {
    fail<CheckpointError>("checkpoint ", where, ": ", kStateName, ": ", e.what());
  }
}

}  // namespace fathom::checkpoint
