#include "apps/exits_thresholds.hpp"

#include <spdlog/fmt/fmt.h>

#include <bit>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <vector>

#include "model/safetensors.hpp"

namespace helios::apps {

namespace json = boost::json;

namespace {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

bool is_threshold(std::string_view key) {
  return key.starts_with("exits.") && key.ends_with(".threshold");
}

}  // namespace

Result<void> write_thresholds(const std::string& from, const std::string& to,
                              const std::map<int, double>& thresholds, const std::string& calibration) {
  std::ifstream in(from, std::ios::binary);
  if (!in) return fail(Errc::io_error, fmt::format("cannot read {}", from));
  std::uint64_t size = 0;
  in.read(reinterpret_cast<char*>(&size), sizeof size);
  if (!in || size > model::Safetensors::kMaxHeaderBytes)
    return fail(Errc::bad_file, fmt::format("{}: not a safetensors file", from));
  std::string text(size, '\0');
  in.read(text.data(), static_cast<std::streamsize>(size));
  boost::system::error_code code;
  json::value header = json::parse(text, code);
  if (!in || code || !header.is_object())
    return fail(Errc::bad_file, fmt::format("{}: its header is not JSON", from));

  json::value& metadata = header.as_object()["__metadata__"];
  if (!metadata.is_object()) metadata = json::object{};
  json::object kept;
  for (const auto& [key, value] : metadata.as_object()) {
    if (!is_threshold(key)) kept[key] = value;
  }
  for (const auto& [layer, threshold] : thresholds)
    kept[fmt::format("exits.{}.threshold", layer)] = fmt::format("{:.4f}", threshold);
  kept["provenance.calibration"] = calibration;
  metadata = std::move(kept);
  text = json::serialize(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // tensors stay aligned

  const std::string partial = to + ".partial";
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  size = text.size();
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  std::vector<char> block(1U << 20U);
  while (in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    out.write(block.data(), in.gcount());
  }
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(partial, to, error);
  if (!out || error) {
    std::filesystem::remove(partial, error);
    return fail(Errc::io_error, fmt::format("cannot write {}", to));
  }
  return {};
}

}  // namespace helios::apps
