"""Operations that read fields at paths and write fields at paths."""
