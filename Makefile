# kvferry. Everything here works from a clone alone; see CONTRIBUTING.md.

GO       ?= go
FUZZTIME ?= 20000x
COVER    ?= 90
export GO FUZZTIME COVER

# For the race detector: packages that start goroutines or synchronize them, and not those that only call them.
RACE ?= $(addprefix ./,$(sort $(dir $(shell grep -rlE 'go func|\.Go.func|"sync"|"sync/atomic"' --include='*.go' \
	convert inspect store/rocks internal/pass internal/shared internal/sys record redis/live serve))))
# Sweeps over damage, models and transcripts run one goroutine for minutes, others start processes, and what memory is
# taken says nothing here: the detector empties pools at random.
RACE_SKIP ?= ^TestMatrix$$|^TestUnknownForms$$|Damage|Killed|Linear|Random|Transcript|^TestGoldens$$|Variants|^Fuzz|Flip|Prefix|Model|Huge|Redis|Sweep|WithoutChecksums|Examples|CutManifest|SalvageEvery|TestFilters|TestModern|LevelDBUsesBuilder|TestMissingBlobs|TestTies|TestUniqueID|AreNotCopied|TestRebuilt|RecordLost|SoundFilters|FilterDenies|WrongSizes|TestGroups|SkipTo|LastSequence|TestRights|TestSelectionSpills

# Of the commands, those tests in which several workers, meters and signals meet; all of them take the detector half an hour.
RACE_COMMANDS ?= ProgressOnTerminal|ProgressNobodyReads|ProgressSignal|ProgressBar|ProgressJSON|Workers|MatrixOnePass|Cancelled|SalvageTables|ClosedPipe|BrokenPipe|FullDisk

.PHONY: help build demo test oracle race race-packages race-commands fuzz-short faults mutants cover lint cross bench bench-full profile docs dist dist-test s3-server slurm manifests clients clean

help:
	@echo 'make demo        convert a bundled database, prove it, clean up (needs only Go)'
	@echo 'make test        all tests, long ones shortened without LONG=1; installs RocksDB, LevelDB and LMDB with apt for the oracles if it can'
	@echo 'make build       bin/kvferry, static'
	@echo 'make bench       speed and memory against a C++ reference, into tools/bench/results'
	@echo 'make bench-full  the same with 20 million elements as well'
	@echo 'make profile     record the CPU profile for optimized builds again'
	@echo 'make oracle      only the tests that use RocksDB, LevelDB and LMDB themselves'
	@echo 'make faults      random damages, forged files, kills, failing system calls, full disks, signals; FOR=30m SEED=1'
	@echo 'make mutants     which changes of the code of PKG=./record its tests miss; DIFF=main: of changed lines alone'
	@echo 'make dist        archives, packages, SBOMs and checksums of a release, in dist/'
	@echo 'make race cover lint cross fuzz-short docs clean'

# A release is named by its tag, any other build by its commit. The binary does not depend on the machine otherwise.
VERSION ?= $(shell git describe --exact-match --tags 2>/dev/null)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
DATE    ?= $(shell TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null)
LDFLAGS  = -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)

# The CPU profile that releases are compiled with. It saves about 3 % CPU time and takes minutes to compile with:
# PGO=tools/bench/kvferry.pgo.
PGO ?= off

build:
	CGO_ENABLED=0 $(GO) build -trimpath -pgo=$(PGO) -ldflags '$(LDFLAGS)' -o bin/kvferry ./cmd/kvferry

demo:
	@scripts/demo

# LONG=1 runs sweeps over all databases and damages to their end; .ci/run takes other cases of them every day.
test:
	@scripts/test $(if $(LONG),,-short) $(TESTFLAGS)

oracle:
	@scripts/oracle

race:
	@$(MAKE) --no-print-directory -j2 race-packages race-commands

# The tests of the commands run one after the other: beside the others they cost little time.
race-packages:
	$(GO) test -race -short -vet=off -ldflags=-w -timeout 15m -skip '$(RACE_SKIP)' $(RACE)
race-commands:
	$(GO) test -race -short -vet=off -ldflags=-w -timeout 15m -run '$(RACE_COMMANDS)' ./cmd/kvferry/command

fuzz-short:
	@scripts/fuzz-short

# Packages with random tests. They take a fixed seed, and a new one in make faults.
SEEDED = $(sort $(dir $(shell grep -rl 'internal/testkit/seed"' --include='*_test.go' .)))

# How long, and what decides all that is random; without SEED every run has another one, which it prints.
FOR  ?= 5m
SEED ?=
faults:
	$(GO) build -C tools -o ../bin/kvferry-faults ./faults
	bin/kvferry-faults -for $(FOR) $(if $(SEED),-seed $(SEED))
	KVFERRY_SEED=$(or $(SEED),$(shell date +%s)) $(GO) test -count=1 -tags "$$(scripts/oracle-tags 2>/dev/null)" $(SEEDED)

# Every change of a package is built and tested by itself, in a copy of the module.
PKG ?= ./record
mutants:
	$(GO) run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 unleash --workers 2 -S lt $(if $(DIFF),--diff $(DIFF)) $(PKG)

cover:
	@scripts/cover

cross:
	@scripts/cross

lint:
	@scripts/lint

bench:
	@$(MAKE) --no-print-directory -C tools/bench bench $(if $(BENCH_DIR),BENCH_DIR='$(abspath $(BENCH_DIR))')

bench-full:
	@$(MAKE) --no-print-directory -C tools/bench bench-full $(if $(BENCH_DIR),BENCH_DIR='$(abspath $(BENCH_DIR))')

profile:
	@scripts/profile

# The server of the tests of object stores, which takes minutes to build: KVFERRY_S3_SERVER=$PWD/bin/versitygw.
s3-server:
	GOBIN='$(CURDIR)/bin' $(GO) install github.com/versity/versitygw/cmd/versitygw@v1.8.0

# A Slurm of Debian, unpacked into bin/slurm for a test: KVFERRY_SLURM=$PWD/bin/slurm.
slurm:
	@scripts/slurm bin/slurm

# The manifests in examples/, and those of kvferry fleet, against the types of Kubernetes.
manifests:
	@tools/manifests/check

# What kvferry serve serves, read by a client library of Go.
clients:
	@tools/clients/check

docs:
	@scripts/docs
	$(GO) run -C tools ./pages ../bin
	@echo 'docs: man pages in bin/man, shell completions in bin/completion'

dist:
	$(GO) run -C tools ./dist

# The same commit gives the same bytes; the Debian package installs, runs and is removed again.
dist-test:
	@scripts/dist-test

clean:
	rm -rf bin dist
	@$(MAKE) --no-print-directory -C tools/bench clean
