"""What the processor of this machine can compute, for tests that need it."""

from gluon_dist.common.processor import processor_flags

import pytest

HAS_AVX512 = "avx512bw" in processor_flags()  # else MXNet refuses bfloat16


def needs_avx512(test):
    """Mark a test that computes in bfloat16; where the processor cannot, CI may skip it too."""
    reason = "MXNet computes in bfloat16 with AVX-512 only"
    return pytest.mark.may_skip(reason)(pytest.mark.skipif(not HAS_AVX512, reason=reason)(test))
