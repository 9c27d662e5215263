//! The memory that an executor has free.

use kernels::{Class, Executor};

/// Free bytes of an executor, if known. A software adapter uses the host's memory.
pub(crate) fn available(executor: &Executor) -> Option<u64> {
    let on_host = match executor {
        Executor::Gpu(device) => device.adapter().class == Class::Software,
        Executor::Cpu => true,
    };
    let host = if on_host { host() } else { None };
    [executor.available_bytes(), host].into_iter().flatten().min()
}

/// Bytes that the system can provide without swapping.
fn host() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        meminfo(&std::fs::read_to_string("/proc/meminfo").ok()?)
    }
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(any(target_os = "linux", test))]
fn meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::meminfo;

    #[test]
    fn available_memory_is_read_and_an_unknown_form_is_unknown() {
        assert_eq!(meminfo("MemTotal:  24 kB\nMemAvailable:   12 kB\n"), Some(12 * 1024));
        assert_eq!(meminfo("MemTotal:  24 kB\n"), None);
        assert_eq!(meminfo("MemAvailable:   12 MB\n"), None);
        assert_eq!(meminfo("MemAvailable: 99999999999999999999 kB\n"), None);
    }
}
