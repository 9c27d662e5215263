//! Checks of composed shaders without a GPU: our rules, naga's validation, and naga's writers for
//! all three native backends.

use kernels::testing::kernel::compose::Shader;
use naga::back::{hlsl, msl, spv};
use naga::valid::{Capabilities, ModuleInfo, ValidationError, ValidationFlags, Validator};
use naga::{AddressSpace, Module, WithSpan};

/// The limited resources that a shader uses.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Use {
    pub threads: u32,
    pub workgroup_bytes: u32,
    pub storage_buffers: usize,
}

/// Parses and validates a shader's text; the error is the diagnostic.
pub fn validate(source: &str, shader: &Shader) -> Result<(Module, ModuleInfo), String> {
    let module = naga::front::wgsl::parse_str(source).map_err(|e| e.emit_to_string(source))?;
    let info = valid(&module, shader).map_err(|e| e.emit_to_string(source))?;
    Ok((module, info))
}

/// Validates a shader's module with exactly the capabilities that its kernel and form declare.
pub fn valid(module: &Module, shader: &Shader) -> Result<ModuleInfo, Box<WithSpan<ValidationError>>> {
    let mut capabilities = Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    let cooperative = shader.variant.kernel.cooperative();
    capabilities.set(Capabilities::SUBGROUP, shader.subgroups || cooperative);
    let cooperating = Capabilities::COOPERATIVE_MATRIX | Capabilities::SHADER_FLOAT16 | Capabilities::SUBGROUP_BARRIER;
    capabilities.set(cooperating, cooperative);
    Validator::new(ValidationFlags::all(), capabilities).validate(module).map_err(Box::new)
}

/// The SPIR-V of what the entry point of a valid shader reaches.
pub fn reached(module: &Module, shader: &Shader) -> Result<Vec<u32>, String> {
    let mut module = module.clone();
    naga::compact::compact(&mut module, naga::compact::KeepUnused::No);
    let info = valid(&module, shader).map_err(|e| e.to_string())?;
    let pipeline = spv::PipelineOptions {
        shader_stage: naga::ShaderStage::Compute,
        entry_point: shader.variant.kernel.entry.to_string(),
    };
    let options = spv::Options { lang_version: (1, 3), ..spv::Options::default() };
    spv::write_vec(&module, &info, &options, Some(&pipeline)).map_err(|e| e.to_string())
}

/// A shader's SPIR-V without the declarations that its entry point, `main`, does not use.
pub fn spirv(source: &str, shader: &Shader, options: &spv::Options<'_>) -> Result<Vec<u32>, String> {
    let (mut module, _) = validate(source, shader)?;
    naga::compact::compact(&mut module, naga::compact::KeepUnused::No);
    module.entry_points[0].name = "main".to_string();
    let info = valid(&module, shader).map_err(|e| e.emit_to_string(source))?;
    let pipeline = spv::PipelineOptions { shader_stage: naga::ShaderStage::Compute, entry_point: "main".to_string() };
    spv::write_vec(&module, &info, options, Some(&pipeline)).map_err(|e| e.to_string())
}

/// The resources that a validated shader uses.
pub fn measure(module: &Module) -> Result<Use, String> {
    let entry = module.entry_points.first().ok_or("no entry point")?;
    let mut layouter = naga::proc::Layouter::default();
    layouter.update(module.to_ctx()).map_err(|e| e.to_string())?;
    let of = |space: fn(AddressSpace) -> bool| module.global_variables.iter().filter(move |(_, var)| space(var.space));
    Ok(Use {
        threads: entry.workgroup_size.iter().product(),
        workgroup_bytes: of(|s| s == AddressSpace::WorkGroup).map(|(_, var)| layouter[var.ty].to_stride()).sum(),
        storage_buffers: of(|s| matches!(s, AddressSpace::Storage { .. })).count(),
    })
}

/// All findings about a shader's text.
pub fn check(shader: &Shader) -> Vec<String> {
    let source = shader.source();
    let mut found = rules(shader, &source);
    match validate(&source, shader) {
        Ok((module, info)) => {
            found.extend(limits(shader, &module));
            found.extend(write(&module, &info, shader));
        }
        Err(diagnostic) => found.push(diagnostic),
    }
    found
}

/// Lines of a kernel's head: the formula, the buffers, and what one workgroup does. They are as
/// wide as prose may be.
const MAX_HEAD: usize = 10;

fn rules(shader: &Shader, source: &str) -> Vec<String> {
    let mut found = vec![];
    for (path, text) in shader.variant.pieces() {
        if !text.starts_with("// ") {
            found.push(format!("{path} has no comment at its head"));
        }
    }
    let (path, text) = shader.variant.kernel.main();
    // The names that a kernel needs and gives have as many lines as they take.
    let head = text.lines().take_while(|line| line.starts_with("//") && !line.starts_with("// Needs: ")).count();
    let params = text.lines().find(|line| !line.starts_with("//") && !line.starts_with("enable "));
    if head > MAX_HEAD || !params.is_some_and(|line| line.starts_with("struct Params")) {
        found.push(format!("{path} has no params after a head of at most {MAX_HEAD} lines"));
    }
    let code = source.lines().map(|line| line.split("//").next().unwrap_or_default());
    for (n, line) in (1..).zip(code) {
        let directive = ["enable ", "requires ", "diagnostic("].iter().any(|d| line.trim_start().starts_with(d));
        if !shader.variant.kernel.cooperative() && (directive || (!shader.subgroups && line.contains("subgroup"))) {
            found.push(format!("line {n} needs more than portable WGSL: {}", line.trim()));
        }
    }
    found
}

fn limits(shader: &Shader, module: &Module) -> Vec<String> {
    let mut found = vec![];
    let entries: Vec<_> = module.entry_points.iter().map(|entry| entry.name.as_str()).collect();
    if entries != [shader.variant.kernel.entry] {
        found.push(format!("entry points {entries:?}, expected {:?} alone", shader.variant.kernel.entry));
    }
    match measure(module) {
        Ok(used) => {
            let (needs, buffers) = (shader.variant.needs, shader.variant.kernel.bindings.len());
            if used.threads > needs.threads
                || used.workgroup_bytes > needs.workgroup_bytes
                || used.storage_buffers != buffers
            {
                found.push(format!("takes {used:?}, beyond {needs:?} with {buffers} storage buffers"));
            }
        }
        Err(e) => found.push(e),
    }
    found
}

/// Writes the module in every backend's language, as wgpu does.
fn write(module: &Module, info: &ModuleInfo, shader: &Shader) -> Vec<String> {
    let mut found = vec![];
    let entry = || (naga::ShaderStage::Compute, shader.variant.kernel.entry.to_string());
    let options = spv::Options { lang_version: (1, 3), ..spv::Options::default() };
    let pipeline = spv::PipelineOptions { shader_stage: entry().0, entry_point: entry().1 };
    if let Err(e) = spv::write_vec(module, info, &options, Some(&pipeline)) {
        found.push(format!("SPIR-V: {e}"));
    }
    if shader.variant.kernel.cooperative() {
        return found; // naga writes matrices of this size for Vulkan alone
    }
    let options = msl::Options { lang_version: (2, 4), ..msl::Options::default() };
    let pipeline = msl::PipelineOptions { entry_point: Some(entry()), ..msl::PipelineOptions::default() };
    match msl::write_string(module, info, &options, &pipeline) {
        Ok((_, translated)) => found
            .extend(translated.entry_point_names.iter().filter_map(|e| e.as_ref().err()).map(|e| format!("MSL: {e}"))),
        Err(e) => found.push(format!("MSL: {e}")),
    }
    let options = hlsl::Options { shader_model: hlsl::ShaderModel::V6_0, ..hlsl::Options::default() };
    let (mut text, pipeline) = (String::new(), hlsl::PipelineOptions { entry_point: Some(entry()) });
    match hlsl::Writer::new(&mut text, &options, &pipeline).write(module, info, None) {
        Ok(reflected) => found
            .extend(reflected.entry_point_names.iter().filter_map(|e| e.as_ref().err()).map(|e| format!("HLSL: {e}"))),
        Err(e) => found.push(format!("HLSL: {e}")),
    }
    found
}
