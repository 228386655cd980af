# cmake -DSOURCE=folder -DOUTPUT=file -P write_commit.cmake
# Writes the .cpp with the commit that SOURCE has checked out; "unknown" without git or outside of a
# clone, a source archive inside of another project's included. A file that already says so is left
# alone, so that nothing is compiled again.
execute_process(COMMAND git --git-dir=${SOURCE}/.git rev-parse --short HEAD
                OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  set(COMMIT unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "launcher/version.h"

std::string fathom::launcher::commit() { return "@COMMIT@"; }
]])
