//! What a device can do, and the table of thresholds by which kernels are chosen.

pub mod table;

use crate::caps::table::Table;

/// The kind of hardware, in order of preference.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Discrete,
    Integrated,
    Virtual,
    Unknown,
    /// A CPU implementation: its results are correct, but it is never called a GPU.
    Software,
}

/// What a device can do, and the thresholds at which one kernel becomes faster than another.
/// Together with the shapes, this is the only input to the choice of kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Subgroup operations are available in compute shaders, with at least eight threads per
    /// subgroup.
    pub subgroups: bool,
    /// Threads of the smallest subgroup, 0 without subgroups.
    pub subgroup_size: u32,
    /// Cooperative matrices of 16 x 16 f16 with f32 sums are available, and so is f16 itself.
    /// Subgroups then have 32 threads.
    pub cooperative: bool,
    /// Dispatches can be timed: between two of them, or by a pass of its own for each.
    pub timestamps: bool,
    /// Largest storage binding, bytes.
    pub max_binding_bytes: u64,
    /// Largest buffer, bytes.
    pub max_buffer_bytes: u64,
    /// Threads per workgroup.
    pub max_workgroup: u32,
    /// Bytes of workgroup memory.
    pub max_workgroup_bytes: u32,
    /// Storage buffers per kernel.
    pub max_storage_buffers: u32,
    /// Workgroups per dimension of a dispatch.
    pub max_grid: u32,
    /// Offset alignment of uniform bindings, bytes.
    pub uniform_align: u32,
    /// Offset alignment of storage bindings, bytes.
    pub storage_align: u32,
    /// The thresholds of the adapter's class, unless measured ones replace them
    /// ([`Device::with_table`](crate::Device::with_table)).
    pub table: Table,
}

impl Caps {
    /// What every WebGPU device has.
    pub const WEBGPU: Self = Self {
        subgroups: false,
        subgroup_size: 0,
        cooperative: false,
        timestamps: false,
        max_binding_bytes: 128 << 20,
        max_buffer_bytes: 256 << 20,
        max_workgroup: 256,
        max_workgroup_bytes: 16 << 10,
        max_storage_buffers: 8,
        max_grid: 65_535,
        uniform_align: 256,
        storage_align: 256,
        table: Table::usual(Class::Unknown, false),
    };

    /// Threads of the smallest subgroup, or 0 where kernels may not use subgroups.
    pub(crate) fn subgroup_threads(&self) -> u32 {
        if self.subgroups { self.subgroup_size.max(1) } else { 0 }
    }
}
