#pragma once
// The parts of an exits file on a device. They are small and are read at once.

#include "model/weights.hpp"

namespace helios::model {

/// Device bytes of one exit's own parts.
std::size_t exit_device_bytes(const gpu::Device& device, const ModelFile& file, const ExitHead& head);

/// Reads and packs one exit. Low-rank deltas are added to the base layer's dequantised weights; such a
/// projection is held as F16 (F32 when the base is). q and k rows are brought from Hugging Face's to GGUF's
/// order. Errors: out_of_memory, io_error, bad_file.
Result<ExitWeights> load_exit(gpu::Device& device, const ModelFile& file, const ExitHead& head);

}  // namespace helios::model
