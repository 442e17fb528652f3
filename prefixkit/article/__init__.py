"""The article: records of all arms in; claims, figures, tables and sentences out."""

from prefixkit.article.article import Article, compute
from prefixkit.article.data import Data, load

__all__ = ["Article", "Data", "compute", "load"]
