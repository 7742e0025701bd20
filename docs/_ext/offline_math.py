"""Formulas as MathML, written at build time: browsers show it by themselves, so pages need no script and no network."""

from html import escape

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def _mathml(node, *, as_block):
    source = node.astext()
    # What LaTeX calls a display environment of its own is, inside one, its plain sibling.
    for display, plain in (("align", "aligned"), ("gather", "gathered")):
        for name in (display, f"{display}*"):
            source = source.replace(f"{{{name}}}", f"{{{plain}}}")
    try:
        return tex2mathml(source, as_block=as_block)
    except MathError as error:
        logger.warning("formula not understood (%s): %s", error, source, location=node)
        return f"<code>{escape(source)}</code>"


def _inline(translator, node):
    translator.body.append(f'<span class="math">{_mathml(node, as_block=False)}</span>')
    raise nodes.SkipNode


def _block(translator, node):
    translator.body.append(f'<div class="math">{_mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
