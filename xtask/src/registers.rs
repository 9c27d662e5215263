//! `registers`: compiles every kernel for an AMD card that need not be there, and prints the
//! registers and spills that Mesa's compiler gives it.
//!
//! The unsafe code calls Vulkan. wgpu has no way to ask for the threads of a subgroup, or for a
//! compiler's statistics.

use crate::{lanes, shaders};
use anyhow::{Context as _, ensure};
use ash::{khr::pipeline_executable_properties as executables, vk};
use kernels::Class;
use kernels::testing::kernel::Access;
use kernels::testing::kernel::compose::Shader;
use kernels::testing::kinds::card;
use kernels::testing::sweep::Target;
use naga::back::spv;
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Compile every kernel with Mesa's RADV for subgroups of 32 and of 64 threads, without a card, and
/// print registers and spills. Kernels with cooperative matrices are left out
#[derive(clap::Args)]
pub struct Args {
    /// Only kernels and variants whose name contains this
    #[arg(long, default_value = "")]
    kernel: String,
    /// The card, as RADV names it: gfx1100 is the Radeon RX 7900, navi21 the RX 6800 and 6900
    #[arg(long, default_value = "gfx1100")]
    family: String,
    /// Only kernels that spill registers to memory
    #[arg(long)]
    spills: bool,
}

/// Threads of a subgroup.
const WAVES: [u32; 2] = [32, 64];

/// The statistics that are printed, as RADV names them, and their columns.
const COLUMNS: [(&str, &str); 7] = [
    ("VGPRs", "vgprs"),
    ("SGPRs", "sgprs"),
    ("Spilled VGPRs", "spilled v"),
    ("Spilled SGPRs", "spilled s"),
    ("Scratch size", "scratch"),
    ("LDS size", "lds"),
    ("Subgroups per SIMD", "per simd"),
];
/// The columns that count spilled registers and their memory.
const SPILLS: std::ops::Range<usize> = 2..5;

/// The numbers of one shader in the order of [`COLUMNS`], or the reason why there are none.
type Row = Result<[u64; COLUMNS.len()], String>;

/// Prints the table. Returns true if the compiler took every shader.
pub fn run(args: &Args) -> anyhow::Result<bool> {
    // SAFETY: no other thread runs yet. The driver reads the variable when it is loaded.
    unsafe { std::env::set_var("RADV_FORCE_FAMILY", &args.family) };
    let compiler = Compiler::open(&args.family)?;
    let targets = Target::all(&card(Class::Discrete, 32, false)).into_iter().map(|target| target.shader);
    let shaders: Vec<Shader> = targets.filter(|shader| shader.variant.name.contains(&args.kernel)).collect();
    ensure!(!shaders.is_empty(), "no kernel's name contains {:?}", args.kernel);
    let rows: Mutex<BTreeMap<(usize, u32), Row>> = Mutex::default();
    let numbered: Vec<_> = shaders.iter().enumerate().collect();
    let work = |_: &mut (), &(n, shader): &(usize, &Shader)| {
        let words = spirv(shader).map_err(anyhow::Error::msg).with_context(|| shader.label())?;
        for wave in WAVES {
            let row = compiler.compile(shader, &words, wave);
            rows.lock().expect("no panic").insert((n, wave), row.map_err(|e| format!("{e:#}")));
        }
        Ok(())
    };
    lanes::each(lanes::cores(), &numbered, || Ok(()), work)?;
    println!("{}", compiler.name);
    println!("{}", line("kernel", "wave", &COLUMNS.map(|(_, title)| title.to_string())));
    let (mut refused, mut spilling) = (0, 0);
    for ((n, wave), row) in rows.into_inner().expect("no panic") {
        let label = shaders[n].label();
        match row {
            Ok(row) => {
                let spills = row[SPILLS].iter().any(|n| *n > 0);
                spilling += usize::from(spills);
                if spills || !args.spills {
                    println!("{}", line(&label, &wave.to_string(), &row.map(|n| n.to_string())));
                }
            }
            Err(reason) => {
                refused += 1;
                println!("{label:<44} {wave:>4} {reason}");
            }
        }
    }
    println!("{} shaders in {} forms: {spilling} spill, {refused} refused", shaders.len(), shaders.len() * WAVES.len());
    Ok(refused == 0)
}

fn line(label: &str, wave: &str, columns: &[String]) -> String {
    columns.iter().fold(format!("{label:<44} {wave:>4}"), |line, column| format!("{line} {column:>9}"))
}

/// A shader as wgpu gives it to a driver that checks the bounds of buffers itself.
fn spirv(shader: &Shader) -> Result<Vec<u32>, String> {
    let bounds_check_policies =
        BoundsCheckPolicies { index: BoundsCheckPolicy::Restrict, ..BoundsCheckPolicies::default() };
    let options = spv::Options {
        lang_version: (1, 3),
        flags: spv::WriterFlags::empty(),
        bounds_check_policies,
        zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::Native,
        force_loop_bounding: false,
        ..spv::Options::default()
    };
    shaders::spirv(&shader.source(), shader, &options)
}

/// A device of a card that is not there. It compiles, and runs nothing.
struct Compiler {
    /// Keeps the loader loaded.
    _entry: ash::Entry,
    instance: ash::Instance,
    device: ash::Device,
    statistics: executables::Device,
    name: String,
}

impl Compiler {
    fn open(family: &str) -> anyhow::Result<Self> {
        // SAFETY: the loader of the system is what every Vulkan program loads.
        let entry = unsafe { ash::Entry::load() }.context("no Vulkan loader: install libvulkan1")?;
        let version = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        // SAFETY: the structs live through each call, and handles are those that the calls before
        // made. `drop` destroys them once.
        unsafe {
            let instance =
                entry.create_instance(&vk::InstanceCreateInfo::default().application_info(&version), None)?;
            let described = |of: &vk::PhysicalDevice| {
                instance
                    .get_physical_device_properties(*of)
                    .device_name_as_c_str()
                    .map(|n| n.to_string_lossy().into_owned())
            };
            let mut found =
                instance.enumerate_physical_devices()?.into_iter().filter_map(|of| Some((of, described(&of).ok()?)));
            let found = found.find(|(_, name)| name.starts_with("Null hardware"));
            let (physical, name) = found.with_context(|| {
                format!("no RADV here that compiles for {family:?}: install mesa-vulkan-drivers, and name a card that this version knows")
            })?;
            let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
            let extensions = [executables::NAME.as_ptr()];
            let mut statistics =
                vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default().pipeline_executable_info(true);
            let mut features = vk::PhysicalDeviceVulkan13Features::default()
                .subgroup_size_control(true)
                .shader_zero_initialize_workgroup_memory(true);
            let made = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&extensions);
            let made = made.push_next(&mut statistics).push_next(&mut features);
            let device =
                instance.create_device(physical, &made, None).context("RADV opens no device without a card")?;
            let statistics = executables::Device::new(&instance, &device);
            Ok(Self { _entry: entry, instance, device, statistics, name })
        }
    }

    /// Compiles a shader for subgroups of this many threads.
    fn compile(&self, shader: &Shader, words: &[u32], wave: u32) -> anyhow::Result<[u64; COLUMNS.len()]> {
        let binding = |(n, kind): (u32, vk::DescriptorType)| {
            let binding =
                vk::DescriptorSetLayoutBinding::default().binding(n).descriptor_type(kind).descriptor_count(1);
            binding.stage_flags(vk::ShaderStageFlags::COMPUTE)
        };
        let storage = |_: &(&str, Access)| vk::DescriptorType::STORAGE_BUFFER;
        let kinds = std::iter::once(vk::DescriptorType::UNIFORM_BUFFER)
            .chain(shader.variant.kernel.bindings.iter().map(storage));
        let bindings: Vec<_> = (0..).zip(kinds).map(binding).collect();
        let mut size = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default().required_subgroup_size(wave);
        // SAFETY: the structs live through each call, and every handle that a call makes is
        // destroyed once, after its last use.
        unsafe {
            let set = self.device.create_descriptor_set_layout(
                &vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings),
                None,
            )?;
            let layout = self
                .device
                .create_pipeline_layout(&vk::PipelineLayoutCreateInfo::default().set_layouts(&[set]), None)?;
            let module = self.device.create_shader_module(&vk::ShaderModuleCreateInfo::default().code(words), None)?;
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(c"main");
            let flags = vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR;
            let wanted =
                vk::ComputePipelineCreateInfo::default().flags(flags).stage(stage.push_next(&mut size)).layout(layout);
            let made = self
                .device
                .create_compute_pipelines(vk::PipelineCache::null(), &[wanted], None)
                .map_err(|(_, error)| error);
            let row = made.context("refused").and_then(|made| {
                let numbers = self
                    .statistics
                    .get_pipeline_executable_statistics(&vk::PipelineExecutableInfoKHR::default().pipeline(made[0]));
                self.device.destroy_pipeline(made[0], None);
                row(&numbers?)
            });
            self.device.destroy_shader_module(module, None);
            self.device.destroy_pipeline_layout(layout, None);
            self.device.destroy_descriptor_set_layout(set, None);
            row
        }
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        // SAFETY: nothing that was made of them is left, and nothing uses them after this.
        unsafe {
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}

/// The numbers of [`COLUMNS`] among the statistics of a driver.
fn row(numbers: &[vk::PipelineExecutableStatisticKHR<'_>]) -> anyhow::Result<[u64; COLUMNS.len()]> {
    let mut row = [0; COLUMNS.len()];
    for ((name, _), cell) in COLUMNS.iter().zip(&mut row) {
        let named = |of: &&vk::PipelineExecutableStatisticKHR<'_>| {
            of.name_as_c_str().is_ok_and(|known| known.to_str() == Ok(name))
        };
        let found = numbers.iter().find(named).with_context(|| format!("this RADV has no statistic {name:?}"))?;
        ensure!(found.format == vk::PipelineExecutableStatisticFormatKHR::UINT64, "{name} is not a count");
        // SAFETY: the format says which field was written.
        *cell = unsafe { found.value.u64 };
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_name_and_a_missing_one_is_named() {
        let of = |name: &str, n: u64| {
            let mut made = vk::PipelineExecutableStatisticKHR {
                format: vk::PipelineExecutableStatisticFormatKHR::UINT64,
                ..Default::default()
            };
            made.name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as _);
            made.value.u64 = n;
            made
        };
        let mut numbers: Vec<_> = (10..).zip(COLUMNS).map(|(n, (name, _))| of(name, n)).collect();
        numbers.reverse();
        assert_eq!(row(&numbers).unwrap(), [10, 11, 12, 13, 14, 15, 16]);
        numbers.pop();
        assert_eq!(row(&numbers).unwrap_err().to_string(), "this RADV has no statistic \"VGPRs\"");
    }

    #[test]
    fn shaders_of_both_forms_are_written_for_the_driver() {
        let shaders = Target::all(&card(Class::Discrete, 32, false)).into_iter().map(|target| target.shader);
        for shader in shaders.filter(|shader| ["rms_norm", "matmul_vec_q8"].contains(&shader.variant.name)) {
            let words = spirv(&shader).unwrap_or_else(|e| panic!("{}: {e}", shader.label()));
            assert_eq!(words[0], 0x0723_0203, "{}", shader.label());
        }
    }
}
