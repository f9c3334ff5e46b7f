#include "convert/convert.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/directories.h"
#include "convert/output.h"
#include "convert/special_tokens.h"

namespace dz::convert {
namespace {

// `out` without a slash at its end, so that it has a name to put a hidden directory beside.
fs::path target_of(const fs::path& out) {
  fs::path target = fs::absolute(out).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  std::error_code error;
  const fs::file_status status = fs::symlink_status(target, error);
  if (!fs::exists(status)) return target;
  if (!fs::is_directory(status)) throw CreateError(Complaint{out.string(), "a file or a link", "no such path yet, or an empty directory", ""});
  if (!fs::is_empty(target, error) || error)
    throw CreateError(Complaint{out.string(), "a directory that is not empty", "no such path yet, or an empty directory", "nothing is overwritten"});
  return target;
}

[[noreturn]] void failed(const fs::path& target, int64_t bytes, const Error& cause) {
  std::string text =
      "converting into " + target.string() + " failed: " + cause.what() + "\n  needed " + std::to_string(bytes) + " bytes and a little more";
  std::error_code error;
  fs::path parent = target.parent_path();
  const fs::space_info space = fs::space(parent, error);
  if (!error) text += ", free now " + std::to_string(space.available);
  throw IoError(text + "; the unfinished files were removed");
}

void refuse_unmeant(const Options& options, const Source& source, Form to) {
  if (to == Form::kNative && !options.dtype.empty() && options.dtype != "F32")
    throw ConfigError(Complaint{"--dtype bf16", "a native checkpoint, which holds float32 only", "--dtype fp32, or none",
                                "the way back (--to hf) gives each tensor the type it had"});
  if (to == Form::kNative && options.names != Names::kHuggingFace)
    throw ConfigError(Complaint{"--names olmo-core", "a native checkpoint, whose names are Hugging Face's", "--to hf", ""});
  if (options.moments && (to == Form::kNative || !source.checkpoint))
    throw ConfigError(Complaint{"--moments", source.checkpoint ? "--to native, which always keeps them" : "a Hugging Face model, which has none",
                                "a native checkpoint or a run, and --to hf", ""});
  if (to == Form::kNative && source.checkpoint && !options.like.empty())
    throw ConfigError(Complaint{"--like", "a copy of a native checkpoint", "--to hf, or a Hugging Face model as input", ""});
}

std::vector<std::string> sorted_set(std::vector<std::string> values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace

Report convert(const Options& options, const ProgressOf& progress) {
  const fs::path target = target_of(options.out);
  const Source source = Source::open(options.in, options.like);
  Report report{.in = source.path, .out = options.out, .from = source.form, .notes = source.notes};
  report.to = options.to.value_or(source.form == Form::kNative ? Form::kHuggingFace : Form::kNative);
  report.warnings = token_differences(source);
  report.step = source.checkpoint ? source.checkpoint->step : 0;
  refuse_unmeant(options, source, report.to);
  for (const SourceTensor& tensor : source.parameters) {
    report.parameters += tensor.stored->elements();
    report.in_types.push_back(tensor.stored->dtype);
  }
  report.tensors = static_cast<int64_t>(source.parameters.size());
  report.out_bytes = report.to == Form::kNative ? native_bytes(source) : hugging_face_bytes(source, options);

  Meter meter(progress, 2 * report.out_bytes);
  const auto write = [&](const fs::path& directory) {
    if (report.to == Form::kNative) {
      write_native(source, directory, meter, report);
    } else {
      write_hugging_face(source, options, directory, meter, report);
    }
  };
  try {
    checkpoint::clean_leftovers_of(target);
    checkpoint::write_directory(target, write);
  } catch (const IoError& error) {
    failed(target, report.out_bytes, error);
  }
  report.in_types = sorted_set(std::move(report.in_types));
  report.out_types = sorted_set(std::move(report.out_types));
  return report;
}

}  // namespace dz::convert
