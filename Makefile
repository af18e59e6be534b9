# What one types here. `make` builds the library and the program; `make help` lists the rest.
#
# The extension is a workspace of its own, so cargo is called for it by name; everything else is cargo at the root.

library_suffix := $(if $(filter Darwin,$(shell uname -s)),dylib,so)
extension      := --manifest-path extension/Cargo.toml --target-dir extension/target
built          := extension/target/release/libfence.$(library_suffix)
library        := dist/fence.$(library_suffix)
built_etcd     := extension/target/etcd/release/libfence.$(library_suffix)
library_etcd   := dist/fence-etcd.$(library_suffix)
program        := dist/fence-cli

# Puts the built file $(1) where $(2) says, if another one is there. It is moved into place and never written over, for a
# program may have the old one loaded; until then it has a name of its own, for another make may be at it as well.
define put
@mkdir -p $(dir $(2))
@cmp -s $(1) $(2) || { new=$$(mktemp $(dir $(2)).new.XXXXXX) && trap 'rm -f "$$new"' EXIT && trap 'exit 1' HUP INT TERM && \
	cp -p $(1) "$$new" && mv -f "$$new" $(2); }
endef

.DEFAULT_GOAL := all
.PHONY: all library program etcd packages demo demo-etcd test docs torture bench lint clean help

all: library program ## both of these: what `make` alone does

library: ## build the release library: dist/fence.so (dist/fence.dylib on macOS)
	@cargo build --release $(extension)
	$(call put,$(built),$(library))

etcd: ## build the library that can also use an etcd cluster: dist/fence-etcd.so
	@cargo build --release --features etcd --manifest-path extension/Cargo.toml --target-dir extension/target/etcd
	$(call put,$(built_etcd),$(library_etcd))

program: ## build the program: dist/fence-cli, its manual and completions; install it as `fence`
	@cargo build --release --package fence-cli --target-dir target
	$(call put,target/release/fence,$(program))
	@$(program) generate dist

packages: $(if $(ETCD),etcd,library) ## build the packages for Python, Node, Go and Rust: dist/; ETCD=1 for those that can use a cluster
	@extension/hosts/package $(if $(ETCD),--library $(CURDIR)/$(library_etcd))

demo: library ## a late writer is refused: two real sqlite3 shells on one database
	@demo/run

demo-etcd: etcd ## the same story on an etcd cluster of three members, whose leader is killed in its middle
	@demo/etcd

test: ## run every test, after installing the hosts that the tests need
	@tests/hosts
	@cargo test

docs: ## run every example of the documents and the recipes, and write what they print into README.md and docs/
	@tests/hosts
	@FENCE_WRITE_DOCS=1 cargo test --package fence-tests --test readme --test hosts_recipes --test hosts_orms -- every_example every_recipe every_program

torture: ## faults over eight processes, and a check of what they did: DURATION=60 seconds, SEED=n, STORM=1, STORE=etcd
	@tests/hosts
	@cargo build --quiet --package fence-tests --bin torture
	@target/debug/torture $(if $(STORM),--storm) $(if $(filter etcd,$(STORE)),--etcd) $(or $(DURATION),60) $(SEED)

bench: ## measure what fences cost beside what they stand on, and write BENCHMARKS.md; ROWS="pair held" prints these rows
	@tests/hosts
	@cargo run --release --manifest-path bench/Cargo.toml --target-dir bench/target -- $(ROWS)

lint: ## what CI demands of the code: format, clippy, documentation, all without a warning
	cargo fmt --check
	cargo fmt --check --manifest-path extension/Cargo.toml
	cargo fmt --check --manifest-path bench/Cargo.toml
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy $(extension) --workspace --all-targets -- -D warnings
	cargo clippy --manifest-path fuzz/Cargo.toml --target-dir target/fuzz --all-targets -- -D warnings
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	cargo clippy --manifest-path bench/Cargo.toml --target-dir bench/target -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
	RUSTDOCFLAGS="-D warnings" cargo doc $(extension) --no-deps

clean: ## remove everything that was built
	cargo clean
	cargo clean $(extension)
	cargo clean --manifest-path bench/Cargo.toml --target-dir bench/target
	rm -rf dist

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
