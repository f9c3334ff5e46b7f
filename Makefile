# The front door. Everything is built by CMake and Ninja; these are the commands that people need.
SHELL := bash
.DEFAULT_GOAL := help
.PHONY: help quickstart build test bench bench-peers lint format sanitize fuzz look clean

help:                ## this list
	@sed -n 's/^\([a-z-]*\):[a-z ]*## *\(.*\)/make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

quickstart: build    ## text to tokenizer, training, a kill, a resume, the proof and a report; TEXT=dir for your own text
	@TEXT='$(TEXT)' tools/quickstart.sh

build:               ## build/deltazero; installs missing Debian packages (tools/setup.sh)
	@tools/setup.sh
	@cmake --preset release --log-level=WARNING
	@ninja -C build deltazero

test:                ## build and run every test
	@tools/setup.sh
	cmake --preset release
	ninja -C build
	tools/test.sh build

bench:               ## speed of the kernels beside this machine's peak
	@tools/setup.sh bench
	cmake --preset release -B build-bench -DDZ_BENCH=ON -DDZ_TESTS=OFF
	ninja -C build-bench
	build-bench/deltazero bench gemm --m 2048 --n 1024 --k 1024 --threads 1
	build-bench/deltazero bench gemm --m 2048 --n 1024 --k 1024
	@for bench in build-bench/bench_*; do echo "== $$bench"; "$$bench" || exit 1; done

sanitize:            ## the tests again, with address and undefined-behaviour sanitizers
	@tools/setup.sh
	cmake --preset asan
	ninja -C build-asan
	ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 tools/test.sh build-asan

fuzz:                ## libFuzzer over every parser of outside bytes, FUZZ_SECONDS each (10)
	@tools/setup.sh fuzz
	cmake --preset fuzz --log-level=WARNING
	ninja -C build-fuzz fuzz_all
	@tools/fuzz.sh build-fuzz $(or $(FUZZ_SECONDS),10)

look: build          ## the report in a headless browser: screenshots in build/look
	@tools/setup.sh look
	@tools/look.sh

bench-peers: build   ## our training step beside PyTorch's and OLMo-core's on this machine; ARGS="--models nano --rounds 3"
	@python3 bench/peers/compare.py build/deltazero $(if $(PEERS_PYTHON),--python '$(PEERS_PYTHON)') $(ARGS)

lint:                ## headers compile alone, formatting, cppcheck
	@tools/setup.sh lint
	@tools/lint.sh

format:              ## clang-format in place
	@tools/setup.sh lint
	git ls-files '*.h' '*.cpp' | xargs clang-format -i

clean:               ## removes what was built; runs/ and data/ stay
	rm -rf build build-*/
