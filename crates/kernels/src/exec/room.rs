//! Memory for the intermediates of plans that take turns.

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::error::Error;
use crate::plan::Planned;

/// Memory that plans share for their intermediates, one buffer each. A device runs steps one after
/// another, and no step reads an intermediate that it has not written itself, so plans for any
/// numbers of rows can take the same buffers. A step of several submits must end before a step of
/// another plan of the room begins.
#[derive(Debug, Default)]
pub struct Room(Vec<Buffer>);

impl Room {
    /// The sizes in bytes of the buffers of a room for all of these plans.
    #[must_use]
    pub fn sizes<'a>(plans: impl IntoIterator<Item = &'a Planned>) -> Vec<u64> {
        let mut sizes: Vec<u64> = vec![];
        for plan in plans {
            let buffers = &plan.placement.buffers;
            sizes.resize(sizes.len().max(buffers.len()), 0);
            sizes.iter_mut().zip(buffers).for_each(|(size, &bytes)| *size = (*size).max(bytes));
        }
        sizes
    }

    /// Buffers of at least these sizes. A larger buffer takes the place of one that is too small.
    /// Plans that have the small one keep it.
    ///
    /// # Errors
    /// A failed allocation, or a limit of the device.
    pub(crate) async fn buffers(&mut self, device: &Device, sizes: &[u64]) -> Result<Vec<Buffer>, Error> {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        for (n, &bytes) in sizes.iter().enumerate() {
            if self.0.get(n).is_none_or(|buffer| buffer.size() < bytes) {
                let buffer = device.buffer("an intermediate", bytes, usage).await?;
                self.0.splice(n..self.0.len().min(n + 1), [buffer]);
            }
        }
        Ok(self.0[..sizes.len()].to_vec())
    }
}
