//! `fence list`: what the store's table `fence_leases` shows. For people and scripts; a program never takes *its* fence
//! from here.

use clap::Args;
use fence_core::Hold;
use serde_json::{Value as Json, json};

use crate::args::StoreArgs;
use crate::exit::Exit;
use crate::table::{Form, Table};

/// Show every live lease and permit, and every key in delay
#[derive(Args, Debug)]
pub struct List {
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    store: StoreArgs,
}

/// The columns: those of `fence_leases`.
const COLUMNS: [&str; 8] = [
    "key",
    "kind",
    "fence",
    "permit",
    "remaining_ms",
    "delay_ms",
    "process",
    "bound",
];

impl List {
    pub fn run(self) -> Result<Exit, String> {
        let store = self.store.open_existing()?;
        let mut table = Table::new(&COLUMNS);
        for hold in store.holds().map_err(|error| error.to_string())? {
            table.push(row(&hold.map_err(|error| error.to_string())?));
        }
        table.print(&self.form)
    }
}

fn row(hold: &Hold) -> Vec<Json> {
    vec![
        json!(hold.key),
        json!(hold.kind.as_str()),
        // As text: many readers of JSON keep numbers in too few bits for a fence.
        json!(hold.fence.map(|fence| fence.to_string())),
        json!(hold.permit.map(|permit| permit.to_string())),
        json!(hold.remaining_ms),
        json!(hold.delay_ms),
        json!(hold.process),
        json!(hold.bound),
    ]
}
