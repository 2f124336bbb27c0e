package vector

// dotRows writes the dot products of a query with rows of integers: row i
// begins at rows[i*len(query)]. len(query) is a multiple of lanes, len(rows)
// one of len(query); dst has a place for each row. Sums fit 32 bits, so every
// implementation gives the same.
func dotRows(dst []int32, query []int16, rows []int8) {
	if len(dst) == 0 {
		return
	}
	if accelerated {
		dotRowsSIMD(&dst[0], &query[0], &rows[0], len(dst), len(query))
		return
	}
	dotRowsGo(dst, query, rows)
}

func dotRowsGo(dst []int32, query []int16, rows []int8) {
	n := len(query)
	for i := range dst {
		row := rows[i*n : (i+1)*n]
		q := query[:len(row)]
		var s0, s1, s2, s3 int32
		for j := 0; j+4 <= len(row); j += 4 {
			s0 += int32(row[j]) * int32(q[j])
			s1 += int32(row[j+1]) * int32(q[j+1])
			s2 += int32(row[j+2]) * int32(q[j+2])
			s3 += int32(row[j+3]) * int32(q[j+3])
		}
		dst[i] = s0 + s1 + s2 + s3
	}
}

// Accelerated names the instructions that scans use: "avx2", "neon", or "none"
// where they are written in Go alone.
func Accelerated() string {
	if accelerated {
		return instructions
	}
	return "none"
}
