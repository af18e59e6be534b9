//! Random sequences of operations and clock steps, on the store and on a small model of it in memory, must give the same
//! answers: from two connections by turns, through openings and reboots. What fails is shrunk to the shortest sequence.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use fence_core::clock::Clock;
use fence_core::{AcquireOptions, Count, Delay, Epoch, Fence, Limit, PermitId, Store, Ttl};
use proptest::collection::vec;
use proptest::prelude::*;

/// Both clocks and the boot, in the test's hand.
#[derive(Clone)]
struct Manual(Arc<Times>);

struct Times {
    now: AtomicI64,
    wall: AtomicI64,
    boot: Mutex<u32>,
}

impl Clock for Manual {
    fn wall_ms(&self) -> i64 {
        self.0.wall.load(Ordering::Relaxed)
    }

    fn now_ms(&self) -> i64 {
        self.0.now.load(Ordering::Relaxed)
    }

    fn boot(&self) -> fence_core::Result<String> {
        Ok(format!("boot {}", self.0.boot.lock().expect("no panic")))
    }
}

/// One step. A lease or permit is named by its place among all that were ever given, so that the old ones are tried too.
#[derive(Clone, Debug)]
enum Step {
    Acquire {
        keys: Vec<u8>,
        ttl: i64,
        delay: i64,
    },
    Renew {
        which: usize,
        ttl: Option<i64>,
    },
    Release {
        which: usize,
    },
    RenewInvented {
        key: u8,
        fence: (u64, u64),
    },
    Permit {
        key: u8,
        limit: i64,
        ttl: i64,
    },
    RenewPermit {
        which: usize,
        ttl: Option<i64>,
    },
    ReleasePermit {
        which: usize,
    },
    /// Time passes.
    Pass {
        ms: i64,
    },
    /// The wall clock is set.
    Set {
        wall: i64,
    },
    /// Another process opens the store.
    Open,
    Reboot,
    Advance {
        epoch: u64,
    },
    List,
}

fn step() -> impl Strategy<Value = Step> {
    let ttl = || prop_oneof![1..50_i64, Just(Ttl::MAX.get())];
    prop_oneof![
        6 => (vec(0..4_u8, 1..3), ttl(), prop_oneof![Just(0), 1..30_i64])
            .prop_map(|(keys, ttl, delay)| Step::Acquire { keys, ttl, delay }),
        4 => (any::<usize>(), proptest::option::of(ttl())).prop_map(|(which, ttl)| Step::Renew { which, ttl }),
        3 => any::<usize>().prop_map(|which| Step::Release { which }),
        1 => (0..4_u8, any::<(u64, u64)>()).prop_map(|(key, fence)| Step::RenewInvented { key, fence }),
        4 => (0..2_u8, 1..4_i64, ttl()).prop_map(|(key, limit, ttl)| Step::Permit { key, limit, ttl }),
        2 => (any::<usize>(), proptest::option::of(ttl())).prop_map(|(which, ttl)| Step::RenewPermit { which, ttl }),
        2 => any::<usize>().prop_map(|which| Step::ReleasePermit { which }),
        6 => (0..60_i64).prop_map(|ms| Step::Pass { ms }),
        1 => (0..2_000_000_i64).prop_map(|wall| Step::Set { wall }),
        1 => Just(Step::Open),
        1 => Just(Step::Reboot),
        1 => (0..3_000_000_u64).prop_map(|epoch| Step::Advance { epoch }),
        1 => Just(Step::List),
    ]
}

/// What the store is in one page.
#[derive(Default)]
struct Model {
    epoch: i64,
    count: u64,
    leases: BTreeMap<String, Lease>,
    permits: Vec<Permit>,
}

#[derive(Clone, Copy)]
struct Lease {
    fence: Fence,
    expires: i64,
    ttl: i64,
    delay: i64,
}

struct Permit {
    key: String,
    id: PermitId,
    expires: i64,
    ttl: i64,
}

impl Model {
    fn open(&mut self, wall: i64) {
        self.epoch = wall.max(self.epoch + 1);
        self.count = 0;
    }

    fn acquire(&mut self, now: i64, keys: &[String], ttl: i64, delay: i64) -> Option<Fence> {
        let is_closed = |key: &String| {
            self.leases
                .get(key)
                .is_some_and(|lease| now < lease.expires + lease.delay)
        };
        if keys.iter().any(is_closed) {
            return None;
        }
        self.count += 1;
        let fence = Fence::new(Epoch::new(self.epoch.unsigned_abs()), Count::new(self.count));
        for key in keys {
            let expires = now + ttl;
            self.leases.insert(
                key.clone(),
                Lease {
                    fence,
                    expires,
                    ttl,
                    delay,
                },
            );
        }
        Some(fence)
    }

    /// The live lease of this key and fence.
    fn live(&mut self, now: i64, key: &str, fence: Fence) -> Option<&mut Lease> {
        let lease = self.leases.get_mut(key)?;
        (lease.fence == fence && now < lease.expires).then_some(lease)
    }

    fn renew(&mut self, now: i64, keys: &[String], fence: Fence, ttl: Option<i64>) -> bool {
        let live = keys.iter().all(|key| self.live(now, key, fence).is_some());
        for key in keys.iter().filter(|_| live) {
            if let Some(lease) = self.live(now, key, fence) {
                lease.ttl = ttl.unwrap_or(lease.ttl);
                lease.expires = now + lease.ttl;
            }
        }
        live
    }

    fn release(&mut self, now: i64, keys: &[String], fence: Fence) -> bool {
        let live = keys.iter().any(|key| self.live(now, key, fence).is_some());
        for key in keys {
            if self.live(now, key, fence).is_some() {
                self.leases.remove(key);
            }
        }
        live
    }

    fn live_permits(&self, now: i64, key: &str) -> usize {
        let live = |permit: &&Permit| permit.key == key && now < permit.expires;
        self.permits.iter().filter(live).count()
    }

    fn live_permit(&mut self, now: i64, id: PermitId) -> Option<&mut Permit> {
        self.permits
            .iter_mut()
            .find(|permit| permit.id == id && now < permit.expires)
    }

    /// A reboot ends every lease.
    fn reboot(&mut self) {
        self.leases.clear();
        self.permits.clear();
    }
}

fn run(steps: &[(bool, Step)]) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir_in(if std::path::Path::new("/dev/shm").is_dir() {
        "/dev/shm"
    } else {
        "/tmp"
    })?;
    let path = folder.path().join("kv.db");
    let times = Times {
        now: AtomicI64::new(1_000),
        wall: AtomicI64::new(1_000_000),
        boot: Mutex::new(0),
    };
    let clock = Manual(Arc::new(times));
    let mut model = Model::default();
    let open = |model: &mut Model| {
        model.open(clock.wall_ms());
        Store::with_clock(&path, clock.clone()).map_err(|error| TestCaseError::fail(error.to_string()))
    };
    let mut stores = [open(&mut model)?, open(&mut model)?];
    let mut given: Vec<(Vec<String>, Fence)> = Vec::new();
    let mut permits: Vec<(String, PermitId)> = Vec::new();
    let mut largest = None;
    for (n, (second, step)) in steps.iter().enumerate() {
        let store = &stores[usize::from(*second)];
        let now = clock.now_ms();
        let failed = |error: fence_core::Error| TestCaseError::fail(format!("step {n}: {error}"));
        match step {
            Step::Acquire { keys, ttl, delay } => {
                let mut keys: Vec<_> = keys.iter().map(|key| format!("k{key}")).collect();
                keys.sort();
                keys.dedup();
                let options = AcquireOptions {
                    ttl: Ttl::new(*ttl).map_err(failed)?,
                    delay: Delay::new(*delay).map_err(failed)?,
                    ..AcquireOptions::default()
                };
                let got = match keys.as_slice() {
                    [key] => store.acquire(key, &options).map_err(failed)?.map(|lease| lease.fence()),
                    keys => {
                        let keys: Vec<_> = keys.iter().map(String::as_str).collect();
                        store.acquire_all(&keys, &options, &|| false).map_err(failed)?
                    }
                };
                prop_assert_eq!(got, model.acquire(now, &keys, *ttl, *delay), "step {}", n);
                if let Some(fence) = got {
                    prop_assert!(Some(fence) > largest, "step {}: {} after {:?}", n, fence, largest);
                    largest = Some(fence);
                    given.push((keys, fence));
                }
            }
            Step::Renew { which, ttl } if !given.is_empty() => {
                let (keys, fence) = &given[which % given.len()];
                let ttl_given = ttl.map(Ttl::new).transpose().map_err(failed)?;
                let got = match keys.as_slice() {
                    [key] => store.renew(key, *fence, ttl_given),
                    _ => store.renew_all(*fence, ttl_given),
                };
                prop_assert_eq!(got.map_err(failed)?, model.renew(now, keys, *fence, *ttl), "step {}", n);
            }
            Step::Release { which } if !given.is_empty() => {
                let (keys, fence) = &given[which % given.len()];
                let got = match keys.as_slice() {
                    [key] => store.release(key, *fence),
                    _ => store.release_all(*fence),
                };
                prop_assert_eq!(got.map_err(failed)?, model.release(now, keys, *fence), "step {}", n);
            }
            Step::RenewInvented { key, fence } => {
                let fence = Fence::new(Epoch::new(fence.0), Count::new(fence.1));
                if given.iter().all(|(_, known)| *known != fence) {
                    let key = format!("k{key}");
                    prop_assert!(!store.renew(&key, fence, None).map_err(failed)?);
                    prop_assert!(!store.release(&key, fence).map_err(failed)?);
                }
            }
            Step::Permit { key, limit, ttl } => {
                let key = format!("k{key}");
                let options = AcquireOptions {
                    ttl: Ttl::new(*ttl).map_err(failed)?,
                    ..AcquireOptions::default()
                };
                let limit = Limit::new(*limit).map_err(failed)?;
                let got = store.acquire_permit(&key, limit, &options, &|| false).map_err(failed)?;
                let free = (model.live_permits(now, &key) as i64) < limit.get();
                prop_assert_eq!(got.is_some(), free, "step {}", n);
                if let Some(id) = got {
                    let expires = now + ttl;
                    permits.push((key.clone(), id));
                    model.permits.push(Permit {
                        key,
                        id,
                        expires,
                        ttl: *ttl,
                    });
                }
            }
            Step::RenewPermit { which, ttl } if !permits.is_empty() => {
                let (key, id) = &permits[which % permits.len()];
                let ttl_given = ttl.map(Ttl::new).transpose().map_err(failed)?;
                let got = store.renew_permit(key, *id, ttl_given).map_err(failed)?;
                let permit = model.live_permit(now, *id);
                prop_assert_eq!(got, permit.is_some(), "step {}", n);
                if let Some(permit) = permit {
                    permit.ttl = ttl.unwrap_or(permit.ttl);
                    permit.expires = now + permit.ttl;
                }
            }
            Step::ReleasePermit { which } if !permits.is_empty() => {
                let (key, id) = &permits[which % permits.len()];
                let got = store.release_permit(key, *id).map_err(failed)?;
                prop_assert_eq!(got, model.live_permit(now, *id).is_some(), "step {}", n);
                if got {
                    model.permits.retain(|permit| permit.id != *id);
                }
            }
            Step::Pass { ms } => {
                clock.0.now.fetch_add(*ms, Ordering::Relaxed);
                clock.0.wall.fetch_add(*ms, Ordering::Relaxed);
            }
            Step::Set { wall } => clock.0.wall.store(*wall, Ordering::Relaxed),
            Step::Open => stores[usize::from(*second)] = open(&mut model)?,
            Step::Reboot => {
                *clock.0.boot.lock().expect("no panic") += 1;
                clock.0.now.store(7, Ordering::Relaxed);
                model.reboot();
                // Nothing of the old boot lives on.
                stores = [open(&mut model)?, open(&mut model)?];
                // A key in delay stays closed for all of it, also one whose delay was over if its row was still there: how
                // long the machine was off, nobody knows. So let it pass.
                clock.0.now.fetch_add(30, Ordering::Relaxed);
            }
            Step::Advance { epoch } => {
                let got = store
                    .advance(Fence::new(Epoch::new(*epoch), Count::new(9)))
                    .map_err(failed)?;
                if model.epoch <= epoch.cast_signed() {
                    model.epoch = clock.wall_ms().max(epoch.cast_signed() + 1);
                    model.count = 0;
                }
                prop_assert_eq!(got.get(), model.epoch.unsigned_abs(), "step {}", n);
            }
            Step::List => {
                let held = store
                    .holds()
                    .map_err(failed)?
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(failed)?;
                let leases = held.iter().filter(|hold| hold.permit.is_none()).map(|hold| &hold.key);
                let expected = model
                    .leases
                    .iter()
                    .filter(|(_, lease)| now < lease.expires + lease.delay);
                prop_assert!(leases.eq(expected.map(|(key, _)| key)), "step {}: {:?}", n, held);
                for key in ["k0", "k1"] {
                    let live = held
                        .iter()
                        .filter(|hold| hold.permit.is_some() && hold.key == key)
                        .count();
                    prop_assert_eq!(live, model.live_permits(now, key), "step {}", n);
                }
            }
            Step::Renew { .. } | Step::Release { .. } | Step::RenewPermit { .. } | Step::ReleasePermit { .. } => {}
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_answers_as_its_model_does(steps in vec((any::<bool>(), step()), 1..80)) {
        run(&steps)?;
    }
}
