//! Devices of every kind, for plans that this machine need not run.

use crate::caps::table::Table;
use crate::caps::{Caps, Class};

/// A device of a class whose smallest subgroups have `threads` threads (0 without subgroups), with
/// the limits of a large card.
#[must_use]
pub fn card(class: Class, threads: u32, cooperative: bool) -> Caps {
    Caps {
        subgroups: threads > 0,
        subgroup_size: threads,
        cooperative,
        max_workgroup: 1024,
        max_workgroup_bytes: 48 << 10,
        max_storage_buffers: 16,
        max_binding_bytes: 1 << 30,
        max_buffer_bytes: 1 << 31,
        table: Table::usual(class, cooperative),
        ..Caps::WEBGPU
    }
}

/// A browser, a card with small subgroups, a card with large ones, and one with cooperative
/// matrices.
#[must_use]
pub fn kinds() -> [Caps; 4] {
    [Caps::WEBGPU, card(Class::Integrated, 8, false), card(Class::Discrete, 32, false), card(Class::Discrete, 32, true)]
}
