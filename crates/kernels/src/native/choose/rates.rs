//! The speed of a device: estimates by its class, or saved measurements.

use super::Crossover;
use crate::caps::Class;
use crate::device::Device;
use crate::native::measure::Measured;

/// Share of the streaming bandwidth that a product of one row reaches.
const PRODUCT_SHARE: f64 = 0.6;

/// The speed of a device in reading, starting dispatches and returning results.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Rates {
    /// Bandwidth of reading memory in long streams.
    pub read_bytes_per_s: f64,
    /// Time of a dispatch that waits for the previous one.
    pub dispatch_s: f64,
    /// Time of a submission and its read-back.
    pub round_trip_s: f64,
    pub crossover: Crossover,
}

impl Rates {
    /// Conservative rates for an ordinary device of this class.
    pub(super) fn modest(class: Class) -> Self {
        let read_bytes_per_s = if class == Class::Discrete { 330e9 } else { 50e9 };
        let crossover = Crossover { gpu_call_s: 1e-3, gpu_element_s: 1e-9, cpu_element_s: 11e-9 };
        Self { read_bytes_per_s, dispatch_s: 4e-6, round_trip_s: 100e-6, crossover }
    }

    #[must_use]
    pub fn of(measured: &Measured, crossover: Crossover) -> Self {
        Self {
            read_bytes_per_s: measured.read_gb_per_s * 1e9,
            dispatch_s: measured.dispatch_us / 1e6,
            round_trip_s: measured.transfer.round_trip_us / 1e6,
            crossover,
        }
    }

    /// Bytes of weights per second in products of one row.
    pub(super) fn product_bytes_per_s(&self) -> f64 {
        PRODUCT_SHARE * self.read_bytes_per_s
    }

    /// The contents of a file, which [`Rates::from_bytes`] reads for the same [`Device::key`].
    #[must_use]
    pub fn to_bytes(&self, key: &str) -> Vec<u8> {
        let Self { read_bytes_per_s, dispatch_s, round_trip_s, crossover } = self;
        let Crossover { gpu_call_s, gpu_element_s, cpu_element_s } = crossover;
        format!(
            "{key}\n{read_bytes_per_s} {dispatch_s} {round_trip_s} {gpu_call_s} {gpu_element_s} {cpu_element_s} end\n"
        )
        .into_bytes()
    }

    /// The rates that [`Rates::to_bytes`] wrote for this key. None if the bytes are truncated,
    /// damaged or of another device.
    #[must_use]
    pub fn from_bytes(key: &str, bytes: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(bytes).ok()?.strip_prefix(key)?.strip_prefix('\n')?.strip_suffix(" end\n")?;
        let numbers: Result<Vec<f64>, _> = line.split(' ').map(str::parse).collect();
        let numbers: [f64; 6] = numbers.ok()?.try_into().ok()?;
        let [read_bytes_per_s, dispatch_s, round_trip_s, gpu_call_s, gpu_element_s, cpu_element_s] = numbers;
        let sound = numbers.iter().all(|n| n.is_finite() && *n >= 0.0) && read_bytes_per_s > 0.0;
        let crossover = Crossover { gpu_call_s, gpu_element_s, cpu_element_s };
        sound.then_some(Self { read_bytes_per_s, dispatch_s, round_trip_s, crossover })
    }
}

impl Device {
    /// The saved rates of this device, if the bytes are complete and of its [`Device::key`].
    #[must_use]
    pub fn kept_rates(&self, bytes: &[u8]) -> Option<Rates> {
        Rates::from_bytes(&self.key(), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_come_back_to_the_bit_and_only_whole_and_for_their_device() {
        let rates = Rates { read_bytes_per_s: 3.35e12 / 3.0, ..Rates::modest(Class::Discrete) };
        let bytes = rates.to_bytes("this device");
        assert_eq!(Rates::from_bytes("this device", &bytes), Some(rates));
        assert_eq!(Rates::from_bytes("that device", &bytes), None);
        assert_eq!(Rates::from_bytes("this devic", &bytes), None);
        for length in 0..bytes.len() {
            assert_eq!(Rates::from_bytes("this device", &bytes[..length]), None, "cut at {length}");
        }
    }

    #[test]
    fn numbers_that_are_no_rates_are_refused() {
        for bad in ["NaN", "inf", "-1", "0", "x", "1 1"] {
            let line = format!("k\n{bad} 1 1 1 1 1 end\n");
            assert_eq!(Rates::from_bytes("k", line.as_bytes()), None, "{bad}");
        }
        assert!(
            Rates::from_bytes("k", b"k\n1 0 1 1 0 1 end\n").is_some(),
            "a transfer may cost nothing beside the rest"
        );
    }
}
