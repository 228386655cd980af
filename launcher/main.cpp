// From here to a kernel in six calls: train -> Trainer::run -> next_step -> GradientStep::run ->
// Transformer::losses -> linear -> the device's kernel.
#include <exception>
#include <iostream>
#include <new>

#include "core/base/error.h"
#include "launcher/command_line.h"

int main(int argc, char** argv) {
  using fathom::ExitCode;
  try {
    return fathom::launcher::run_command_line(argc, argv);
  } catch (const fathom::Error& error) {
    std::cerr << "fathom: " << error.what() << std::endl;
    return int(error.code());
  } catch (const std::bad_alloc&) {
    std::cerr << "fathom: out of memory; lower batch.micro_tokens or the model's size" << std::endl;
    return int(ExitCode::kPeer);
  } catch (const std::exception& error) {
    std::cerr << "fathom: " << error.what() << std::endl;
    return int(ExitCode::kIo);
  }
}
