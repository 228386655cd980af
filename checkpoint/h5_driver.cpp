#include "checkpoint/h5_driver.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <type_traits>

#include "checkpoint/h5_handle.h"

namespace fathom::checkpoint {
namespace {

static_assert(std::is_same_v<hid_t, int64_t>);

// What travels in the access properties.
struct DriverInfo {
  MetadataFile* file;
};

// The library sees the base class, this driver the rest.
struct OpenFile : H5FD_t {
  MetadataFile* file;
};

MetadataFile& file_of(H5FD_t* open) { return *static_cast<OpenFile*>(open)->file; }
const MetadataFile& file_of(const H5FD_t* open) {
  return *static_cast<const OpenFile*>(open)->file;
}

// The functions below are called from C: no exception may leave them.

H5FD_t* open(const char*, unsigned, hid_t access, haddr_t) noexcept {
  const auto* info = static_cast<const DriverInfo*>(H5Pget_driver_info(access));
  auto* const opened = new (std::nothrow) OpenFile{};
  if (opened != nullptr) opened->file = info->file;
  return opened;
}

herr_t close(H5FD_t* open) noexcept {
  delete static_cast<OpenFile*>(open);
  return 0;
}

// As the library's own drivers for one plain file: space is allocated the same way, and the file
// gets the same bytes.
herr_t query(const H5FD_t*, unsigned long* flags) noexcept {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

haddr_t size(const H5FD_t* open, H5FD_mem_t) noexcept { return file_of(open).size; }

herr_t resize(H5FD_t* open, H5FD_mem_t, haddr_t size) noexcept {
  file_of(open).size = size;
  return 0;
}

herr_t read(H5FD_t* open, H5FD_mem_t, hid_t, haddr_t offset, size_t size, void* to) noexcept {
  file_of(open).bytes.read(offset, {static_cast<std::byte*>(to), size});
  return 0;
}

// Succeeds even if it does not: the library keeps what it cannot write, and tries again at exit.
herr_t write(H5FD_t* open, H5FD_mem_t kind, hid_t, haddr_t offset, size_t size,
             const void* from) noexcept {
  if (kind == H5FD_MEM_DRAW) return 0;
  MetadataFile& file = file_of(open);
  try {
    file.bytes.write(offset, {static_cast<const std::byte*>(from), size});
  } catch (const std::bad_alloc&) {
    file.is_whole = false;
  }
  return 0;
}

hid_t register_driver() {
  constexpr H5FD_mem_t kFreeLists[] = H5FD_FLMAP_DICHOTOMY;
  H5FD_class_t driver{};
  driver.name = "fathom-metadata";
  driver.maxaddr = haddr_t(INT64_MAX);
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(DriverInfo);
  driver.open = open;
  driver.close = close;
  driver.query = query;
  driver.get_eoa = size;
  driver.set_eoa = resize;
  driver.get_eof = size;
  driver.read = read;
  driver.write = write;
  std::copy(std::begin(kFreeLists), std::end(kFreeLists), driver.fl_map);
  return H5FDregister(&driver);
}

}  // namespace

MetadataDriver::MetadataDriver() : id_(register_driver()) {
  if (id_ < 0) fail_h5("registering the driver");
}

MetadataDriver::~MetadataDriver() { H5FDunregister(id_); }

void MetadataDriver::use(int64_t access, MetadataFile& file) const {
  const DriverInfo info{&file};
  check_h5(H5Pset_driver(access, id_, &info), "setting the driver");
}

}  // namespace fathom::checkpoint
