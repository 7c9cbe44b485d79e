//! Workgroup counts of an indirect launch.

use std::fmt;
use std::sync::Arc;

use scry_ir::Interface;

use crate::api::binding::View;
use crate::api::element::ElementLayout;
use crate::api::error::Result;
use crate::core::check::{self, Argument};
use crate::core::command::BufferRange;
use crate::core::context::Context;
use crate::core::memory::Memory;
use crate::core::same_device::same_device;

/// A reference to workgroup counts in a buffer. Keeps the memory alive.
#[derive(Clone)]
pub(crate) struct CountBuffer {
    context: Arc<Context>,
    /// `None` if the buffer is empty.
    memory: Option<Arc<Memory>>,
    label: String,
    offset: u64,
    size: u64,
    element_size: u64,
    layout: ElementLayout,
    type_name: &'static str,
}

impl CountBuffer {
    /// References the start of a buffer or slice.
    pub(crate) fn new(view: View<'_>) -> Self {
        Self {
            context: view.context.clone(),
            memory: view.memory.cloned(),
            label: view.label.to_owned(),
            offset: view.offset,
            size: view.size,
            element_size: view.element.size,
            layout: view.element.layout,
            type_name: view.element.name,
        }
    }

    /// Checks the counts for a launch. Returns their memory and range.
    pub(crate) fn check(
        &self,
        context: &Arc<Context>,
        operation: &str,
        interface: &Interface,
    ) -> Result<(&Arc<Memory>, BufferRange)> {
        let role = || "the counts of Launch::indirect".to_owned();
        same_device(context, (&self.context, &self.label), operation, role)?;
        let argument = Argument {
            label: &self.label,
            element_size: self.element_size,
            layout: self.layout,
            type_name: self.type_name,
            memory: self.memory.as_ref().map(|memory| memory.id()),
            offset: self.offset,
            size: self.size,
        };
        let counts = check::counts(interface, &argument)?;
        let memory = self.memory.as_ref().expect("the check rejects empty buffers");
        Ok((memory, counts))
    }
}

impl fmt::Debug for CountBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { label, offset, size, .. } = self;
        write!(f, "CountBuffer({label:?}, {size} bytes at {offset})")
    }
}
