// The files of a corpus, listed before any is read: what a restart compares, and what a progress bar divides by.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dz::text {

enum class Format : uint8_t { kText, kHtml, kJsonLines };

struct InputFile {
  std::string path;  // not a filesystem::path, which takes a kilobyte: there may be millions
  Format format = Format::kText;
  int64_t bytes = 0;     // on disk, compressed
  int64_t modified = 0;  // nanoseconds of the file system's clock; only good for asking whether it is the same
};

struct InputFiles {
  std::vector<InputFile> files;
  int64_t skipped = 0;  // unknown extension, inside a directory
  int64_t bytes = 0;    // of all files, on disk
};

// The roots one after another; a directory recursively, its files in bytewise order of their path, links to directories not followed.
// Known endings: txt, text, md, rst, pod, html, htm, xhtml, jsonl, ndjson, each also with .gz or .zst behind. A root that is a file with
// another ending is taken as plain text. InputError for a missing root or an unreadable directory.
InputFiles list_inputs(const std::vector<std::filesystem::path>& roots);

}  // namespace dz::text
