//! Arguments of a batch's transfers: buffers and slices, typed or not.

use crate::api::binding::{Sealed as _, View};
use crate::api::buffer::Buffer;
use crate::api::dtype::ElementType;
use crate::api::element::Element;
use crate::api::error::Result;
use crate::api::slice::Slice;
use crate::api::untyped_buffer::UntypedBuffer;

/// Elements in the memory of a device, as [`Batch`](crate::Batch) copies, writes and reads them:
/// `&Buffer<T>`, [`Slice<T>`](Slice) or `&UntypedBuffer`.
///
/// The host reads and writes an [`UntypedBuffer`] as bytes: [`Elements::Item`] is `u8`.
pub trait Elements: sealed::Sealed {
    /// The type of an element on the host.
    type Item: Element;

    /// `T` if the type of the elements is known at compile time, else [`Untyped`].
    type Kind;
}

/// Elements of a type that is only known at run time; see [`Elements::Kind`].
#[derive(Debug, Clone, Copy)]
pub enum Untyped {}

pub(crate) mod sealed {
    use super::{ElementType, Result, View};

    /// Seals [`Elements`](super::Elements).
    pub trait Sealed {
        #[doc(hidden)]
        fn bytes(&self) -> View<'_>;

        #[doc(hidden)]
        fn element(&self) -> ElementType;

        /// Checks the length of host data; the error names `operation`.
        #[doc(hidden)]
        fn check_len(&self, operation: &'static str, given: usize) -> Result<()>;
    }
}

impl<T: Element> Elements for Slice<'_, T> {
    type Item = T;
    type Kind = T;
}

impl<T: Element> sealed::Sealed for Slice<'_, T> {
    fn bytes(&self) -> View<'_> {
        self.view()
    }

    fn element(&self) -> ElementType {
        ElementType::of::<T>()
    }

    fn check_len(&self, operation: &'static str, given: usize) -> Result<()> {
        self.check_length(operation, given)
    }
}

impl<T: Element> Elements for &Slice<'_, T> {
    type Item = T;
    type Kind = T;
}

impl<T: Element> sealed::Sealed for &Slice<'_, T> {
    fn bytes(&self) -> View<'_> {
        self.view()
    }

    fn element(&self) -> ElementType {
        ElementType::of::<T>()
    }

    fn check_len(&self, operation: &'static str, given: usize) -> Result<()> {
        self.check_length(operation, given)
    }
}

impl<T: Element> Elements for &Buffer<T> {
    type Item = T;
    type Kind = T;
}

impl<T: Element> sealed::Sealed for &Buffer<T> {
    fn bytes(&self) -> View<'_> {
        self.view()
    }

    fn element(&self) -> ElementType {
        ElementType::of::<T>()
    }

    fn check_len(&self, operation: &'static str, given: usize) -> Result<()> {
        Slice::from(*self).check_length(operation, given)
    }
}

impl Elements for &UntypedBuffer {
    type Item = u8;
    type Kind = Untyped;
}

impl sealed::Sealed for &UntypedBuffer {
    fn bytes(&self) -> View<'_> {
        self.view()
    }

    fn element(&self) -> ElementType {
        self.element_type()
    }

    fn check_len(&self, operation: &'static str, given: usize) -> Result<()> {
        self.check_size(operation, given)
    }
}
