// HDF5 identifiers with an owner, and its errors as exceptions. Only h5_*.cpp may include this:
// nothing else sees the C API.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <hdf5.h>

namespace fathom::checkpoint {

// Does not leave h5_*.cpp: it becomes an IoError or a CheckpointError that names the file.
struct H5Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws H5Error: "<doing>: <the innermost message of the library's error stack>".
[[noreturn]] void fail_h5(std::string_view doing);

inline void check_h5(herr_t status, std::string_view doing) {
  if (status < 0) fail_h5(doing);
}

template <herr_t (*Close)(hid_t)>
class H5Handle {
 public:
  H5Handle(hid_t id, std::string_view doing) : id_(id) {
    if (id < 0) fail_h5(doing);
  }
  H5Handle(H5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  H5Handle& operator=(H5Handle&&) = delete;
  ~H5Handle() {
    if (id_ >= 0) Close(id_);
  }
  [[nodiscard]] hid_t get() const { return id_; }
  // For identifiers that may fail to close.
  [[nodiscard]] herr_t close() { return Close(std::exchange(id_, -1)); }

 private:
  hid_t id_;
};

using H5File = H5Handle<H5Fclose>;
using H5Group = H5Handle<H5Gclose>;
using H5Dataset = H5Handle<H5Dclose>;
using H5Space = H5Handle<H5Sclose>;
using H5Type = H5Handle<H5Tclose>;
using H5Properties = H5Handle<H5Pclose>;

// Keeps HDF5 from printing the errors of this thread, which become exceptions.
class H5Quiet {
 public:
  H5Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  H5Quiet(const H5Quiet&) = delete;
  H5Quiet& operator=(const H5Quiet&) = delete;
  ~H5Quiet() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace fathom::checkpoint
