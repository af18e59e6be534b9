//! A program that uses the store through the core: one line in, one line out. The tests start several of them.
//!
//! `worker STORE`; it does not open the store before the first line. A fence or a permit is printed as its text, 'held'
//! stands for no answer, and an error is `error CODE MESSAGE`.
//!
//! | line | answer |
//! |---|---|
//! | `acquire KEY TTL [WAIT [bound]]` | the fence, or `held` |
//! | `renew KEY FENCE [TTL]`, `release KEY FENCE` | `1` or `0` |
//! | `acquire-all KEY+KEY TTL` | the fence, or `held` |
//! | `release-all FENCE` | `1` or `0` |
//! | `permit KEY LIMIT TTL [WAIT]` | the permit, or `held` |
//! | `renew-permit KEY PERMIT`, `release-permit KEY PERMIT` | `1` or `0` |
//! | `advance FENCE`, `epoch` | the epoch |
//! | `leases` | `KEY=FENCE` or `KEY=permit` of all that is live, in one line |
//! | `loop KEY TTL COUNT` | acquires and releases so often; the largest fence, when it is done |
//! | `drop` | closes the store; `ok` |

use std::error::Error;
use std::io::{Write, stdin, stdout};

use fence_core::{AcquireOptions, Fence, Limit, PermitId, Store, Ttl, Wait};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: worker STORE")?;
    let mut store = None;
    for line in stdin().lines() {
        let line = line?;
        let words: Vec<_> = line.split(' ').collect();
        let answer = match words.as_slice() {
            ["drop"] => {
                store = None;
                Ok("ok".to_owned())
            }
            words => store
                .take()
                .map_or_else(|| Store::open(&path), Ok)
                .map_err(Box::from)
                .and_then(|opened| answer(store.insert(opened), words)),
        };
        let answer = answer.unwrap_or_else(|error| match error.downcast_ref::<fence_core::Error>() {
            Some(known) => format!("error {} {known}", known.code()),
            None => format!("error - {error}"),
        });
        writeln!(stdout(), "{answer}")?;
    }
    Ok(())
}

fn answer(store: &Store, words: &[&str]) -> Result<String, Box<dyn Error>> {
    let held = || "held".to_owned();
    let yes = |answer: bool| u8::from(answer).to_string();
    Ok(match words {
        ["acquire", key, ttl, rest @ ..] => {
            let options = AcquireOptions {
                ttl: Ttl::new(ttl.parse()?)?,
                wait: Wait::new(rest.first().map_or(Ok(0), |wait| wait.parse())?)?,
                bound: rest.get(1) == Some(&"bound"),
                ..AcquireOptions::default()
            };
            let lease = store.acquire(key, &options)?;
            lease.map_or_else(held, |lease| lease.fence().wire().to_string())
        }
        ["renew", key, fence, ttl @ ..] => {
            let ttl = ttl.first().map(|ttl| ttl.parse()).transpose()?;
            yes(store.renew(key, fence_of(fence)?, ttl.map(Ttl::new).transpose()?)?)
        }
        ["release", key, fence] => yes(store.release(key, fence_of(fence)?)?),
        ["acquire-all", keys, ttl] => {
            let options = AcquireOptions {
                ttl: Ttl::new(ttl.parse()?)?,
                ..AcquireOptions::default()
            };
            let keys: Vec<_> = keys.split('+').collect();
            let fence = store.acquire_all(&keys, &options, &|| false)?;
            fence.map_or_else(held, |fence| fence.wire().to_string())
        }
        ["release-all", fence] => yes(store.release_all(fence_of(fence)?)?),
        ["permit", key, limit, ttl, rest @ ..] => {
            let options = AcquireOptions {
                ttl: Ttl::new(ttl.parse()?)?,
                wait: Wait::new(rest.first().map_or(Ok(0), |wait| wait.parse())?)?,
                ..AcquireOptions::default()
            };
            let permit = store.acquire_permit(key, Limit::new(limit.parse()?)?, &options, &|| false)?;
            permit.map_or_else(held, |permit| permit.to_string())
        }
        ["renew-permit", key, permit] => yes(store.renew_permit(key, permit.parse::<PermitId>()?, None)?),
        ["release-permit", key, permit] => yes(store.release_permit(key, permit.parse::<PermitId>()?)?),
        ["advance", fence] => store.advance(fence_of(fence)?)?.get().to_string(),
        ["epoch"] => store.epoch()?.get().to_string(),
        ["leases"] => {
            let rows = store.holds()?.collect::<Result<Vec<_>, _>>()?;
            let row = |hold: &fence_core::Hold| match hold.fence {
                Some(fence) => format!("{}={}", hold.key, fence.wire()),
                None => format!("{}=permit", hold.key),
            };
            rows.iter().map(row).collect::<Vec<_>>().join(" ")
        }
        ["loop", key, ttl, count] => {
            let options = AcquireOptions {
                ttl: Ttl::new(ttl.parse()?)?,
                wait: Wait::new(60_000)?,
                ..AcquireOptions::default()
            };
            let mut last = Fence::new(fence_core::Epoch::new(0), fence_core::Count::new(0));
            for _ in 0..count.parse::<u64>()? {
                let lease = store.acquire(key, &options)?.ok_or("held for a minute")?;
                assert!(lease.fence() > last, "{} came after {}", lease.fence(), last);
                last = lease.fence();
                store.release(key, last)?;
            }
            last.wire().to_string()
        }
        _ => return Err(format!("no such line: {}", words.join(" ")).into()),
    })
}

fn fence_of(text: &str) -> Result<Fence, Box<dyn Error>> {
    Ok(text.parse::<Fence>()?)
}
