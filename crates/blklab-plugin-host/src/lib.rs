//! Schedulers from WebAssembly files: plug-ins of the simulator.
//!
//! [`load`] checks a file and reads the scheduler's description; [`Loaded`] makes one for each run, with a
//! memory of its own. A plug-in runs in an interpreter: it reaches nothing but its memory, which is bounded
//! ([`MEMORY`]), as is the work of each call ([`FUEL`]). The same calls give the same answers on every machine.
//! `blklab-plugin` is the other side of the calls.

mod described;
mod instance;

use std::sync::Arc;

use blklab_core::scheduler::plugin::{Answer, Foreign, Made, Maker, Merges};
use blklab_core::scheduler::{Info, QueueLimits, Settings};
use wasmi::{CompilationMode, Config, EnforcedLimits, Engine, Module};

use instance::Instance;

/// The version of the calls that this blklab speaks.
pub const INTERFACE: u32 = 1;
/// Memory of a plug-in, in bytes.
pub const MEMORY: usize = 64 << 20;
/// Work of a call, about one for each instruction of WebAssembly: some 0.1 s.
pub const FUEL: u64 = 20_000_000;
/// The largest file.
pub const FILE: usize = 16 << 20;

/// A plug-in that was read.
pub struct Loaded {
    /// Its description, which is never freed: a caller loads each content once.
    pub info: &'static Info,
    merges: Merges,
    module: Module,
    hash: String,
}

/// Reads a plug-in. `hash` stands for its content.
///
/// # Errors
/// In a few words after the name of the file: `is not WebAssembly`.
pub fn load(content: &[u8], hash: String) -> Answer<Loaded> {
    if content.len() > FILE {
        return Err(format!("has {} bytes; expected at most {FILE}", content.len()));
    }
    if !content.starts_with(b"\0asm") {
        return Err("is not WebAssembly; expected a file built for wasm32-unknown-unknown".to_owned());
    }
    let mut config = Config::default();
    config
        .consume_fuel(true)
        .compilation_mode(CompilationMode::Eager)
        .enforced_limits(EnforcedLimits::strict())
        .ignore_custom_sections(true);
    let engine = Engine::new(&config);
    let module = Module::new(&engine, content)
        .map_err(|error| format!("is no valid WebAssembly: {}", one_line(&error.to_string())))?;
    if let Some(import) = module.imports().next() {
        let name = one_line(&format!("{}.{}", import.module(), import.name()));
        return Err(format!(
            "needs {name}, which blklab does not have; expected a file built for wasm32-unknown-unknown"
        ));
    }
    let text = Instance::describe(&module)?;
    let (info, merges) = described::read(&text)?;
    Ok(Loaded { info: Box::leak(Box::new(info)), merges, module, hash })
}

/// The text without line breaks and other control characters, and not too long.
fn one_line(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(300).collect::<String>().trim().to_owned()
}

impl Loaded {
    /// For a specification of a scheduler.
    pub fn made(self: &Arc<Loaded>) -> Made {
        Made(Arc::clone(self) as Arc<dyn Maker>)
    }
}

impl Maker for Loaded {
    fn hash(&self) -> &str {
        &self.hash
    }

    fn merges(&self) -> Merges {
        self.merges
    }

    fn make(&self, settings: &Settings, limits: &QueueLimits) -> Answer<Box<dyn Foreign>> {
        Ok(Box::new(Instance::begin(&self.module, settings, limits)?))
    }
}
