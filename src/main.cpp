#include "cli/cli.h"

int main(int argc, char** argv) { return dz::cli::run(argc, argv); }
