#include "convert/special_tokens.h"

#include <algorithm>

#include "model/special_tokens.h"

namespace dz::convert {

std::vector<std::string> token_differences(const Source& source) {
  const model::SpecialTokens of_config{.eos_key = "config.json: eos_token_id",
                                       .pad_key = "config.json: pad_token_id",
                                       .eos = source.config.eos_token_ids,
                                       .pad = source.config.pad_token_id};
  return model::token_differences(of_config, [&](const std::string& name) {
    const auto file = std::ranges::find(source.side_files, name, &SideFile::name);
    return file == source.side_files.end() ? std::string() : file->read();
  });
}

}  // namespace dz::convert
