// state.h5 as HDF5's own core driver builds it, elements and all: what our layout must equal.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <hdf5.h>

#include "checkpoint/archive.h"

namespace fathom::checkpoint {

inline std::string core_driver_image(std::span<const ArrayView> arrays) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(access, size_t{1} << 20, false);
  H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST);
  const hid_t links = H5Pcreate(H5P_LINK_CREATE), layout = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  H5Pset_layout(layout, H5D_CONTIGUOUS);
  H5Pset_fill_time(layout, H5D_FILL_TIME_NEVER);
  H5Pset_obj_track_times(layout, false);
  const hid_t file = H5Fcreate("core-driver-image", H5F_ACC_TRUNC, H5P_DEFAULT, access);
  for (const ArrayView& array : arrays) {
    const std::vector<hsize_t> extents(array.shape.begin(), array.shape.end());
    const hid_t space = extents.empty()
                            ? H5Screate(H5S_SCALAR)
                            : H5Screate_simple(int(extents.size()), extents.data(), nullptr);
    const hid_t type = array.type == ElementType::kF32 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
    const hid_t set = H5Dcreate2(file, array.name.c_str(), type, space, links, layout, H5P_DEFAULT);
    if (!array.bytes.empty())
      H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.bytes.data());
    H5Dclose(set);
    H5Sclose(space);
  }
  H5Fflush(file, H5F_SCOPE_LOCAL);
  std::string image(size_t(H5Fget_file_image(file, nullptr, 0)), '\0');
  H5Fget_file_image(file, image.data(), image.size());
  H5Fclose(file);
  H5Pclose(layout);
  H5Pclose(links);
  H5Pclose(access);
  return image;
}

}  // namespace fathom::checkpoint
