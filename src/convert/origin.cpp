#include "convert/origin.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/elements.h"
#include "checkpoint/manifest.h"

namespace dz::convert {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "deltazero hugging face origin 1";

[[noreturn]] void damaged(const std::string& where, const std::string& found, const std::string& expected) {
  throw CheckpointError(Complaint{.where = where, .found = found, .expected = expected, .hint = "not a file that deltazero wrote"});
}

}  // namespace

std::string to_json(const Origin& origin) {
  const Json json{{"format", kFormat}, {"config", origin.config}, {"dtypes", origin.dtypes}, {"side_files", origin.side_files}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Origin parse_origin(std::string_view text, const std::string& where) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("format", Json()) != kFormat) damaged(where, "another format", kFormat);
  Origin origin;
  try {
    json.at("config").get_to(origin.config);
    json.at("dtypes").get_to(origin.dtypes);
    json.at("side_files").get_to(origin.side_files);
  } catch (const Json::exception& error) {
    damaged(where, error.what(), "config, dtypes and side_files");
  }
  for (const auto& [name, dtype] : origin.dtypes)
    if (!checkpoint::is_float_type(dtype)) damaged(where, name + " of dtype " + dtype, "F32, BF16 or F16");
  for (const std::string& name : origin.side_files)
    if (!checkpoint::is_plain_name(name)) damaged(where, "side file \"" + name + "\"", "the name of a file in the same directory");
  return origin;
}

}  // namespace dz::convert
