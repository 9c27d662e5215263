//! `web`: the npm package and the pages.

use crate::npm;
use crate::packages::target;
use crate::workspace::root;
use anyhow::{Context as _, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use wasm_bindgen_cli_support::Bindgen;

/// The folder of the crate, which is the root of the npm packages.
const FOLDER: &str = "crates/web";

/// The model that comes with the package.
const MODEL: &str = "crates/cli/assets/default.gguf";

/// The target of the compiler.
const TARGET: &str = "wasm32-unknown-unknown";

/// Debian's compiler for browsers, which has the source of the standard library beside it.
const DEBIAN: (&str, &str) = ("/usr/bin/rustc", "/usr/bin/wasm-ld-19");

/// What the module uses beyond WebAssembly 1.0. Every browser with WebGPU has them.
const FEATURES: [&str; 6] = [
    "--enable-bulk-memory",
    "--enable-sign-ext",
    "--enable-nontrapping-float-to-int",
    "--enable-mutable-globals",
    "--enable-reference-types",
    "--enable-multivalue",
];

/// Build the npm package and the pages, and pack the package into target/web
///
/// The compiler needs the target wasm32-unknown-unknown (`rustup target add`), or on Debian the
/// packages rustc-web, rust-web-src and lld-19. The pages need npm. With --small the module becomes
/// a quarter smaller, which takes `wasm-opt` of binaryen 119 or newer two minutes.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo xtask web                  build, and write the pages to target/web/site
  cargo xtask web --out DIR        write the pages to DIR, for any static host
  cargo xtask web --serve          build, and serve the pages on this machine
  cargo xtask web --test           build, and run all tests of package and pages in a browser")]
pub struct Args {
    /// Folder for the pages; they have relative URLs
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Serve the pages on this machine until Ctrl-C
    #[arg(long)]
    serve: bool,
    /// Run the tests of the package and of the pages in a browser
    #[arg(long)]
    test: bool,
    /// Browser for the tests: a Chromium's name or path
    #[arg(long, value_name = "PROGRAM", default_value = "chromium")]
    browser: PathBuf,
    /// Make the module smaller with `wasm-opt`
    #[arg(long)]
    small: bool,
    /// Take this module instead of compiling one
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
    /// Take the package that is built already, and build the pages alone
    #[arg(long, conflicts_with = "module")]
    pages: bool,
}

/// Builds the package and the pages. Returns the folder of the pages.
pub fn built() -> Result<PathBuf> {
    let browser = PathBuf::from("chromium");
    build(&Args { out: None, serve: false, test: false, browser, small: false, module: None, pages: false })
}

pub fn run(args: &Args) -> Result<()> {
    let (folder, site) = (root().join(FOLDER), build(args)?);
    println!("{}", site.display());
    if args.test {
        let browser = crate::browser::program(&args.browser)?;
        let program = native()?;
        let tested = npm_with(&folder, &["test"], &[("BROWSER_PROGRAM", &browser), ("WEFT_PROGRAM", &program)])?;
        ensure!(tested.success(), "tests of {FOLDER} failed; the lines above say which");
    }
    if args.serve {
        ensure!(npm_with(&folder, &["run", "preview", "--workspace", "demo"], &[])?.success(), "the server failed");
    }
    Ok(())
}

fn build(args: &Args) -> Result<PathBuf> {
    let (folder, out) = (root().join(FOLDER), target("web"));
    npm::install(&folder)?;
    let package = folder.join("js/dist");
    if !args.pages {
        npm::run(&folder, &["run", "build", "--workspace", "js"])?;
        let module = args.module.clone().map_or_else(compiled, Ok)?;
        engine(&module, &package.join("engine"), args.small)?;
        fs::copy(root().join(MODEL), package.join("default.gguf")).context(MODEL)?;
        fs::create_dir_all(&out)?;
        let to = out.to_str().context("the path of the target folder is not UTF-8")?;
        npm::run(&folder, &["pack", "--workspace", "js", "--pack-destination", to])?;
    }
    npm::run(&folder, &["run", "build", "--workspace", "demo"])?;
    let site = args.out.clone().unwrap_or_else(|| out.join("site"));
    copy(&folder.join("demo/dist"), &site)?;
    Ok(site)
}

/// The command, with which the tests compare the page. It is built if it is not there.
fn native() -> Result<PathBuf> {
    let name = format!("weft{}", std::env::consts::EXE_SUFFIX);
    let program = target("debug").join(name);
    if !program.exists() {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        let built = cargo.args(["build", "--locked", "-p", "cli", "--bin", "weft"]).current_dir(root()).status();
        ensure!(built.context("starting cargo")?.success(), "the command does not compile");
    }
    Ok(std::path::absolute(program)?)
}

/// Runs npm with its output, and names programs to its scripts.
fn npm_with(folder: &Path, args: &[&str], programs: &[(&str, &Path)]) -> Result<std::process::ExitStatus> {
    let mut npm = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    npm.args(args).current_dir(folder).envs(programs.iter().copied());
    npm.status().map_err(|error| npm::missing(error, "npm", "npm"))
}

/// Compiles the crate, and returns the path of its module.
fn compiled() -> Result<PathBuf> {
    let folder = target("wasm");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--profile", "web", "--lib", "--locked", "-p", "web", "--target", TARGET, "--target-dir"]);
    cargo.arg(&folder).current_dir(root());
    if !has_target()? {
        let (rustc, linker) = DEBIAN;
        if ![rustc, linker, "/usr/share/doc/rust-web-src"].iter().all(|path| Path::new(path).exists()) {
            bail!(
                "the compiler has no target {TARGET}: `rustup target add {TARGET}` adds it, or on Debian \
                 `apt-get install rustc-web rust-web-src lld-19`"
            );
        }
        cargo.arg("-Zbuild-std=std,panic_abort").env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1");
        cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
    }
    let built = cargo.status().context("starting cargo")?;
    ensure!(built.success(), "the crate `web` does not compile for {TARGET}");
    Ok(folder.join(TARGET).join("web/web.wasm"))
}

/// Whether the compiler has the standard library for the target.
fn has_target() -> Result<bool> {
    let mut rustc = Command::new("rustc");
    let said = rustc.args(["--print", "target-libdir", "--target", TARGET]).output().context("starting rustc")?;
    Ok(said.status.success() && Path::new(String::from_utf8_lossy(&said.stdout).trim()).is_dir())
}

/// Writes the module and its JavaScript.
fn engine(module: &Path, into: &Path, small: bool) -> Result<()> {
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).web(true)?.typescript(true).out_name("weft");
    bindgen.remove_name_section(true).remove_producers_section(true);
    bindgen.generate(into).context("making the JavaScript of the module")?;
    let made = into.join("weft_bg.wasm");
    if small {
        let mut opt = Command::new("wasm-opt");
        opt.arg("-O2").args(FEATURES).arg(&made).arg("-o").arg(&made);
        let status = opt.status().map_err(|error| npm::missing(error, "wasm-opt", "binaryen"))?;
        ensure!(status.success(), "wasm-opt failed on {}; it must be of binaryen 119 or newer", made.display());
    }
    println!("{}: {} bytes", made.display(), fs::metadata(&made)?.len());
    Ok(())
}

/// Makes a folder a copy of another one.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        ensure!(
            fs::read_dir(to)?.next().is_none() || to.join("weft-pages").exists(),
            "{} holds other files; name an empty folder",
            to.display()
        );
        fs::remove_dir_all(to)?;
    }
    copy_all(from, to)?;
    // Marks a folder that the next run may replace.
    fs::write(to.join("weft-pages"), "cargo xtask web\n")?;
    Ok(())
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_all(&from, &to)?;
        } else {
            fs::copy(&from, &to).with_context(|| to.display().to_string())?;
        }
    }
    Ok(())
}
